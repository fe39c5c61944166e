#include "lib/run/user_turn.h"

#include <string_view>

namespace mm::run {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

void erase_all(std::string& text, std::string_view what) {
  if (trimmed(what).empty()) return;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at))
    text.erase(at, what.size());
}

}  // namespace

std::string user_turn(std::span<const int32_t> ids, const text::ChatTemplate& chat,
                      const text::Tokenizer& tokenizer) {
  std::string text = tokenizer.decode(ids, /*keep_marks=*/true);
  // Decoders give blanks beside marks as they like, so words are compared without them.
  const std::string after = chat.user_close + chat.answer_open;
  if (const std::string_view close = trimmed(after); !close.empty()) {
    if (const size_t at = text.rfind(close); at != std::string::npos) text.erase(at);
  }
  if (const std::string_view open = trimmed(chat.user_open); !open.empty()) {
    if (const size_t at = text.find(open); at != std::string::npos) text.erase(0, at + open.size());
  }
  erase_all(text, chat.image_open);
  erase_all(text, chat.image_close);
  for (const text::Mark& mark : tokenizer.marks()) erase_all(text, mark.text);
  return std::string(trimmed(text));
}

}  // namespace mm::run
