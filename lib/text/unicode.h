#pragma once
#include <string>

namespace mm::text {

// Properties of code points by utf8proc's tables (Unicode 15.0 in Debian 12). Any value is allowed;
// what is no code point has no property.

bool is_white_space(char32_t c);      ///< White_Space
bool is_mark(char32_t c);             ///< Mn, Mc, Me
bool is_nonspacing_mark(char32_t c);  ///< Mn
bool is_punctuation(char32_t c);      ///< P*, and the ASCII symbols $+<=>^`|~
bool is_numeric(char32_t c);          ///< Nd, Nl, No
bool is_other(char32_t c);            ///< Cc, Cf, Cs, Co
/// \w: letters, marks, digits, letter numbers, connectors, joiners, circled and squared letters.
bool is_word(char32_t c);
/// The ideographs that BERT stands apart (blocks CJK Unified, Extensions A-E, Compatibility).
bool is_ideograph(char32_t c);
/// Full lower case without context (a final sigma stays U+03C3): one character, but for U+0130.
void append_lower(char32_t c, std::string& out);

}  // namespace mm::text
