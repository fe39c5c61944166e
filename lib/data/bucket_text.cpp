#include "lib/data/bucket_text.h"

#include <fmt/format.h>

#include <charconv>

#include "lib/text/utf8.h"

namespace mm::data {
namespace {

Result<BucketText> class_of(const Record& record, const text::Tokenizer& names) {
  const std::string& label = record.label;
  if (label.empty()) return Failure{"no_label", "has no class"};
  if (const auto id = names.piece_to_id(label)) return BucketText{{*id}};
  int32_t number = -1;
  const auto end = std::from_chars(label.data(), label.data() + label.size(), number);
  if (end.ec == std::errc() && end.ptr == label.data() + label.size() && number >= 0 &&
      number < names.vocab_size()) {
    return BucketText{{number}};
  }
  return Failure{"unknown_label", fmt::format("class \"{}\" is none of the {} class names", label,
                                              names.vocab_size())};
}

std::string caption_of(const text::Conversation& conversation) {
  for (const text::Turn& turn : conversation.turns) {
    if (turn.role == text::Role::kAssistant) return turn.text;
  }
  return {};
}

}  // namespace

Result<BucketText> bucket_text(const Record& record, const text::Tokenizer& tokenizer,
                               const PackOptions& options) {
  if (!options.source.labels.empty()) return class_of(record, tokenizer);
  const std::string caption = caption_of(record.conversation);
  if (!text::is_valid_utf8(caption)) return Failure{"bad_utf8", "the caption is not UTF-8"};
  const auto most = static_cast<size_t>(options.max_length);
  BucketText text{tokenizer.encode_whole(caption)};
  text.cut = text.ids.size() > most;
  if (text.cut) text.ids = tokenizer.encode_whole(caption, most);
  return text;
}

}  // namespace mm::data
