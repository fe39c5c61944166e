#include "lib/text/vocabulary.h"

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "lib/base/error.h"
#include "lib/text/byte_alphabet.h"

namespace mm::text {
namespace {

using nlohmann::json;

// Ids may have gaps, but a small file must not ask for a huge table.
constexpr int64_t kMaxId = 16'000'000;

int32_t checked_id(const json& value, std::string_view piece, std::string_view origin) {
  const bool number = value.is_number_integer() || value.is_number_unsigned();
  const int64_t id = number ? value.get<int64_t>() : -1;
  if (id < 0 || id > kMaxId)
    throw DataError("{}: the id of piece \"{}\" is not between 0 and {}", origin,
                    piece.substr(0, 80), kMaxId);
  return static_cast<int32_t>(id);
}

void read_vocabulary(const json& model, std::string_view origin, bool byte_level, Vocabulary& out) {
  const auto vocab = model.find("vocab");
  if (vocab == model.end() || !vocab->is_object() || vocab->empty())
    throw DataError("{}: model.vocab is not a table of pieces and ids", origin);
  for (const auto& [spelling, value] : vocab->items()) {
    const int32_t id = checked_id(value, spelling, origin);
    std::string piece = spelling;
    if (byte_level) {
      auto bytes = spelling_to_bytes(spelling);
      if (!bytes)
        throw DataError("{}: piece \"{}\" is not spelled in the byte alphabet", origin,
                        spelling.substr(0, 80));
      piece = std::move(*bytes);
    }
    if (!out.add(std::move(piece), id))
      throw DataError("{}: two pieces have the id {}", origin, id);
  }
  if (out.size() > 4 * static_cast<int64_t>(vocab->size()) + 65536) {
    throw DataError("{}: {} pieces but ids up to {}", origin, vocab->size(), out.size() - 1);
  }
}

void read_added_tokens(const json& root, std::string_view origin, std::vector<Mark>& marks) {
  const auto added = root.find("added_tokens");
  if (added == root.end() || added->is_null()) return;
  if (!added->is_array()) throw DataError("{}: added_tokens is not a list", origin);
  for (const json& token : *added) {
    if (!token.is_object() || !token.contains("content") || !token.contains("id") ||
        !token["content"].is_string()) {
      throw DataError("{}: an added token lacks its content or id", origin);
    }
    const auto text = token["content"].get<std::string>();
    for (const char* flag : {"lstrip", "rstrip", "single_word"}) {
      const auto value = token.find(flag);
      if (value != token.end() && *value != false)
        throw DataError("{}: added token \"{}\" uses {}, which is not supported", origin, text,
                        flag);
    }
    marks.push_back({text, checked_id(token["id"], text, origin)});
  }
}

int32_t first_known(const std::vector<Mark>& marks, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    for (const Mark& mark : marks) {
      if (mark.text == name) return mark.id;
    }
  }
  return -1;
}

// TemplateProcessing with one special token in front of the text; the other processors change
// offsets only.
void read_post_processor(const json& processor, std::string_view origin,
                         TokenizerJsonParts& parts) {
  if (processor.is_null()) return;
  const std::string type = processor.is_object() ? processor.value("type", "") : "";
  if (type == "ByteLevel") return;
  if (type == "Sequence" && processor.contains("processors") &&
      processor["processors"].is_array()) {
    for (const json& inner : processor["processors"]) {
      if (inner.is_object() && inner.value("type", "") == "Sequence")
        throw DataError("{}: nested post-processors are not supported", origin);
      read_post_processor(inner, origin, parts);
    }
    return;
  }
  if (type != "TemplateProcessing" || !processor.contains("single") ||
      !processor["single"].is_array()) {
    throw DataError("{}: post-processor \"{}\" is not supported", origin, type);
  }
  const json& single = processor["single"];
  if (single.empty() || !single.back().contains("Sequence") || single.size() > 2) {
    throw DataError("{}: the post-processor adds more than a begin token, which is not supported",
                    origin);
  }
  if (single.size() == 1) return;
  const json special = single[0].value("SpecialToken", json::object());
  const auto name = special.value("id", std::string());
  parts.bos = first_known(parts.marks, {name});
  if (parts.bos < 0)
    throw DataError("{}: the post-processor's begin token \"{}\" is no added token", origin, name);
  parts.adds_bos = true;
}

void add_extra_marks(const std::vector<std::string>& extra, TokenizerJsonParts& parts) {
  for (const Mark& mark : parts.marks) parts.vocab_size = std::max(parts.vocab_size, mark.id + 1);
  for (const std::string& text : extra) {
    if (first_known(parts.marks, {text}) < 0) parts.marks.push_back({text, parts.vocab_size++});
  }
}

}  // namespace

bool Vocabulary::add(std::string piece, int32_t id) {
  if (static_cast<size_t>(id) >= pieces_.size()) pieces_.resize(static_cast<size_t>(id) + 1);
  if (pieces_[id] || !ids_.try_emplace(piece, id).second) return false;
  pieces_[id] = std::move(piece);
  return true;
}

std::optional<int32_t> Vocabulary::find(std::string_view piece) const {
  const auto found = ids_.find(piece);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

const std::string* Vocabulary::piece(int32_t id) const {
  return id >= 0 && id < size() && pieces_[id] ? &*pieces_[id] : nullptr;
}

TokenizerJsonParts read_parts(const json& root, std::string_view origin, bool byte_level,
                              const TokenizerOptions& options) {
  TokenizerJsonParts parts;
  const json& model = root["model"];
  read_vocabulary(model, origin, byte_level, parts.vocabulary);
  parts.vocab_size = parts.vocabulary.size();
  read_added_tokens(root, origin, parts.marks);
  parts.bos = first_known(parts.marks, {"<s>", "<|begin_of_text|>", "<bos>"});
  parts.eos = first_known(parts.marks, {"</s>", "<|end_of_text|>", "<|endoftext|>", "<eos>"});
  parts.pad = first_known(parts.marks, {"<pad>", "<|pad|>", "<|finetune_right_pad_id|>", "[PAD]"});
  const auto unk = model.find("unk_token");
  if (unk != model.end() && unk->is_string()) {
    const auto name = unk->get<std::string>();
    parts.unk = parts.vocabulary.find(name).value_or(first_known(parts.marks, {name}));
  }
  if (root.contains("post_processor")) read_post_processor(root["post_processor"], origin, parts);
  add_extra_marks(options.extra_marks, parts);
  return parts;
}

JsonTokenizer::JsonTokenizer(TokenizerJsonParts parts) : parts_(std::move(parts)) {
  for (const Mark& mark : parts_.marks) mark_texts_.emplace(mark.id, mark.text);
  set_marks(parts_.marks);
}

const std::string* JsonTokenizer::mark_text(int32_t id) const {
  const auto found = mark_texts_.find(id);
  return found == mark_texts_.end() ? nullptr : &found->second;
}

std::optional<int32_t> JsonTokenizer::mark_id(std::string_view text) const {
  for (const Mark& mark : marks()) {
    if (mark.text == text) return mark.id;
  }
  return std::nullopt;
}

}  // namespace mm::text
