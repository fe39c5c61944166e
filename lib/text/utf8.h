#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mm::text {

/// One decoded code point and its length in bytes (1..4). Anything that is not well-formed UTF-8
/// (RFC 3629: overlong forms, surrogates, values above 10FFFF, cut sequences) gives `valid` = false
/// and length 1.
struct CodePoint {
  char32_t value = 0;
  size_t length_bytes = 1;
  bool valid = false;
};
/// `at` < text.size().
CodePoint decode_utf8(std::string_view text, size_t at);
void append_utf8(char32_t value, std::string& out);
bool is_valid_utf8(std::string_view text);
/// Bytes of the longest beginning of a character at `at`, where decode_utf8 finds none: 1 to 3.
size_t broken_length(std::string_view text, size_t at);
/// Each broken part (as the Unicode Standard cuts them, section 3.9) becomes one U+FFFD.
std::string replace_invalid_utf8(std::string_view text);

/// Without Unicode white space at both ends (White_Space property and the separators 1C..1F, as
/// Python's str.strip).
std::string_view strip(std::string_view text);

}  // namespace mm::text
