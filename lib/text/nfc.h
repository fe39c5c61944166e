#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mm::text {

/// A text in Unicode normal form C, and for each of its bytes the byte of the source that it came
/// from (non-decreasing).
struct Normalised {
  std::string text;
  std::vector<uint32_t> source_byte;
};

/// True if the text is surely in form C: it has no character from U+0300 on. O(n).
bool is_nfc_quick(std::string_view text);

/// Normal form C (Unicode Standard Annex 15): decompose, order marks by combining class, compose.
/// Bytes that are not UTF-8 are kept as they are. O(n log n).
Normalised to_nfc(std::string_view text);

}  // namespace mm::text
