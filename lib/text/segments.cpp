#include "lib/text/segments.h"

#include <algorithm>

#include "lib/base/error.h"

namespace mm::text {
namespace {

constexpr std::string_view kBos = "{bos}", kEos = "{eos}";

void push(RenderedSample& out, int32_t id, bool trained) {
  out.ids.push_back(id);
  out.labels.push_back(trained ? id : kIgnore);
}

}  // namespace

void Segments::begin(std::string_view text) {
  if (tokenizer_.adds_bos() && !text.starts_with(kBos)) add_id(tokenizer_.bos_id(), false);
  add_template(text, false);
}

void Segments::add_id(int32_t id, bool trained) {
  if (id >= 0) parts_.push_back({{}, id, trained});
}

void Segments::add_template(std::string_view text, bool trained) {
  std::string plain;
  const auto flush = [&] {
    add_text(plain, trained);
    plain.clear();
  };
  for (size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const auto mark = std::find_if(tokenizer_.marks().begin(), tokenizer_.marks().end(),
                                   [&](const Mark& m) { return rest.starts_with(m.text); });
    if (rest.starts_with(kBos) || rest.starts_with(kEos)) {
      flush();
      add_id(rest.starts_with(kBos) ? tokenizer_.bos_id() : tokenizer_.eos_id(), trained);
      at += kBos.size();
    } else if (mark != tokenizer_.marks().end()) {
      flush();
      add_id(mark->id, trained);
      at += mark->text.size();
    } else if (rest.starts_with("<|")) {
      throw UsageError(
          "the template's mark {} is not in the tokenizer; choose a template that fits it",
          rest.substr(0, rest.find("|>") + 2));
    } else {
      plain += text[at++];
    }
  }
  flush();
}

void Segments::add_text(std::string_view text, bool trained) {
  if (!text.empty()) parts_.push_back({std::string(text), -1, trained});
}

void Segments::add_user_text(std::string_view text) {
  while (true) {
    const size_t at = text.find(kImageMark);
    add_text(text.substr(0, at), false);
    if (at == std::string_view::npos) return;
    add_template(chat_.image_open, false);
    add_id(picture_id_, false);
    add_template(chat_.image_close, false);
    text.remove_prefix(at + kImageMark.size());
  }
}

// Parts [first, end) are text. A token belongs to the part in which it begins.
void Segments::encode_run(size_t first, size_t end, bool at_start, RenderedSample& out) const {
  std::string whole;
  std::vector<size_t> part_ends;
  for (size_t i = first; i < end; ++i) {
    whole += parts_[i].text;
    part_ends.push_back(whole.size());
  }
  const Encoding encoding = tokenizer_.encode_text(whole, at_start);
  size_t part = 0;
  for (size_t i = 0; i < encoding.ids.size(); ++i) {
    while (part + 1 < part_ends.size() && encoding.begin_byte[i] >= part_ends[part]) ++part;
    push(out, encoding.ids[i], parts_[first + part].trained);
  }
}

RenderedSample Segments::tokenise(int32_t image_tokens,
                                  std::span<const int32_t> picture_tokens) const {
  RenderedSample out;
  bool at_start = true;
  for (size_t i = 0; i < parts_.size();) {
    const Part& part = parts_[i];
    if (part.id < 0) {
      size_t end = i;
      while (end < parts_.size() && parts_[end].id < 0) ++end;
      encode_run(i, end, at_start, out);
      at_start = false;
      i = end;
      continue;
    }
    const bool picture = part.id == picture_id_;
    int32_t count = 1;
    if (picture) {
      const size_t number = out.images.size();
      count = number < picture_tokens.size() ? picture_tokens[number] : image_tokens;
      out.images.push_back({static_cast<int32_t>(out.ids.size()), count});
    }
    for (int32_t k = 0; k < count; ++k) push(out, part.id, part.trained);
    ++i;
  }
  return out;
}

}  // namespace mm::text
