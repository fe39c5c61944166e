#pragma once
#include <string_view>

#include "lib/text/aligned_text.h"

namespace mm::text {

/// Unicode normal forms (Unicode Standard Annex 15).
enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

/// True if the text is surely in form C: it has no character from U+0300 on. O(n).
bool is_nfc_quick(std::string_view text);

/// `in` in `form`, appended to `out`: decompose, order marks by combining class, compose (forms C
/// and KC). Bytes that are not UTF-8 are kept as they are. Tables are utf8proc's. O(n log n).
void append_normal_form(NormalForm form, TextView in, AlignedText& out);
AlignedText to_normal_form(NormalForm form, std::string_view text);

}  // namespace mm::text
