#include "lib/text/word_level.h"

#include "lib/base/error.h"
#include "lib/text/utf8.h"

namespace mm::text {
namespace {

constexpr std::string_view kBlankSign = "\u2581";

class WordLevel final : public JsonTokenizer {
 public:
  WordLevel(TokenizerJsonParts parts, WordSplit split)
      : JsonTokenizer(std::move(parts)), split_(split) {}

  Encoding encode_text(std::string_view text, bool at_start) const override {
    Encoding out;
    if (split_.kind == WordSplit::Kind::kWhitespace) {
      split_at_whitespace(text, out);
    } else {
      split_at_blanks(text, at_start, out);
    }
    return out;
  }

  std::string decode(std::span<const int32_t> ids, bool keep_marks) const override {
    std::string out;
    for (const int32_t id : ids) {
      const std::string* mark = mark_text(id);
      if (mark != nullptr && !keep_marks) continue;
      const std::string* piece = mark != nullptr ? mark : vocabulary().piece(id);
      if (piece == nullptr) continue;
      if (split_.kind == WordSplit::Kind::kWhitespace && !out.empty()) out += ' ';
      out += *piece;
    }
    return split_.kind == WordSplit::Kind::kWhitespace ? out : signs_to_blanks(out);
  }

  std::optional<int32_t> piece_to_id(std::string_view piece) const override {
    const auto mark = mark_id(piece);
    return mark ? mark : vocabulary().find(piece);
  }

  std::string id_to_piece(int32_t id) const override {
    const std::string* piece = mark_text(id) != nullptr ? mark_text(id) : vocabulary().piece(id);
    return piece != nullptr ? *piece : std::string();
  }

 private:
  void emit(std::string_view word, size_t begin, Encoding& out) const {
    const int32_t id = vocabulary().find(word).value_or(unk_id());
    if (id < 0)
      throw DataError("the word \"{}\" is unknown and the tokenizer has no unk_token",
                      word.substr(0, 80));
    out.ids.push_back(id);
    out.begin_byte.push_back(static_cast<uint32_t>(begin));
  }

  void split_at_whitespace(std::string_view text, Encoding& out) const {
    size_t begin = 0;
    const auto flush = [&](size_t end) {
      if (end > begin) emit(text.substr(begin, end - begin), begin, out);
    };
    for (size_t at = 0; at < text.size();) {
      const size_t length = decode_utf8(text, at).length_bytes;
      if (strip(text.substr(at, length)).empty()) {
        flush(at);
        begin = at + length;
      }
      at += length;
    }
    flush(text.size());
  }

  // Each word carries the blank before it as a sign; a blank with no word after it is a word of its
  // own.
  void split_at_blanks(std::string_view text, bool at_start, Encoding& out) const {
    if (text.empty()) return;
    const bool prepend = split_.prepend == WordSplit::Prepend::kAlways ||
                         (split_.prepend == WordSplit::Prepend::kFirst && at_start);
    std::string word = prepend && text[0] != ' ' ? std::string(kBlankSign) : std::string();
    size_t begin = 0;
    for (size_t at = 0; at < text.size(); ++at) {
      if (text[at] != ' ') {
        word += text[at];
        continue;
      }
      if (!word.empty()) emit(word, begin, out);
      word = kBlankSign;
      begin = at;
    }
    emit(word, begin, out);
  }

  static std::string signs_to_blanks(std::string_view text) {
    std::string out;
    for (size_t at = 0; at < text.size();) {
      const bool sign = text.substr(at).starts_with(kBlankSign);
      if (!sign) out += text[at];
      if (sign && at > 0) out += ' ';
      at += sign ? kBlankSign.size() : 1;
    }
    return out;
  }

  WordSplit split_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_word_level(TokenizerJsonParts parts, WordSplit split) {
  return std::make_unique<WordLevel>(std::move(parts), split);
}

}  // namespace mm::text
