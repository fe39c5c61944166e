#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "lib/text/added_tokens.h"

namespace mm::text {

/// What a family of tokenizers adds to its file of ranks.
struct TiktokenScheme {
  std::string_view name;
  int32_t ranks = 0;         ///< of the published file, by which a file is recognised
  std::string_view pattern;  ///< words, in Oniguruma's dialect
  bool nfc = false;          ///< text is brought to Unicode normal form C first
  bool adds_bos = false;
  std::string_view bos, eos;
};

std::span<const TiktokenScheme> all_tiktoken_schemes();
/// Special tokens for a file whose largest rank is `ranks` - 1; ids are those of the published
/// tokenizers.
std::vector<AddedToken> special_tokens(const TiktokenScheme& scheme, int32_t ranks);

}  // namespace mm::text
