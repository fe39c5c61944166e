#include "lib/base/text_escape.h"

#include <fmt/format.h>

#include <cstdint>

namespace mm {
namespace {

constexpr std::string_view kCut = "...";

std::string escaped_byte(unsigned char byte) {
  if (byte == '\n') return "\\n";
  if (byte == '\t') return "\\t";
  return fmt::format("\\x{:02x}", byte);
}

// C0, DEL, and C1 (U+0080..U+009F), which terminals may take for escape sequences.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return character.size() == 2 && first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
}

}  // namespace

size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (text.size() < length) return 0;
  uint32_t point = first & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0u) != 0x80u) return 0;
    point = (point << 6) | (byte(i) & 0x3fu);
  }
  const bool overlong = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
  const bool surrogate = point >= 0xd800 && point <= 0xdfff;
  return overlong || surrogate || point > 0x10ffff ? 0 : length;
}

std::string escape_text(std::string_view text, size_t max_bytes) {
  std::string out;
  size_t cut_at = 0;  // last length that leaves room for the dots
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    std::string piece(text.substr(0, length == 0 ? 1 : length));
    if (length == 0 || is_control(piece)) {
      std::string escaped;
      for (const char c : piece) escaped += escaped_byte(static_cast<unsigned char>(c));
      piece = std::move(escaped);
    }
    if (out.size() + piece.size() > max_bytes) return out.substr(0, cut_at) + std::string(kCut);
    out += piece;
    if (out.size() + kCut.size() <= max_bytes) cut_at = out.size();
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

}  // namespace mm
