#include "lib/text/byte_alphabet.h"

#include <array>

#include "lib/text/utf8.h"

namespace mm::text {
namespace {

constexpr bool prints_as_itself(int byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

constexpr char32_t kAlphabetEnd = 256 + 68;

constexpr std::array<char32_t, 256> make_characters() {
  std::array<char32_t, 256> characters{};
  char32_t next = 256;
  for (int byte = 0; byte < 256; ++byte)
    characters[byte] = prints_as_itself(byte) ? static_cast<char32_t>(byte) : next++;
  return characters;
}
constexpr auto kCharacters = make_characters();

constexpr std::array<int, kAlphabetEnd> make_bytes() {
  std::array<int, kAlphabetEnd> bytes{};
  for (int& byte : bytes) byte = -1;
  for (int byte = 0; byte < 256; ++byte) bytes[kCharacters[byte]] = byte;
  return bytes;
}
constexpr auto kBytes = make_bytes();

}  // namespace

std::string bytes_to_spelling(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) append_utf8(kCharacters[static_cast<unsigned char>(c)], out);
  return out;
}

std::optional<std::string> spelling_to_bytes(std::string_view spelling) {
  std::string out;
  for (size_t at = 0; at < spelling.size();) {
    const CodePoint c = decode_utf8(spelling, at);
    if (!c.valid || c.value >= kAlphabetEnd || kBytes[c.value] < 0) return std::nullopt;
    out.push_back(static_cast<char>(kBytes[c.value]));
    at += c.length_bytes;
  }
  return out;
}

}  // namespace mm::text
