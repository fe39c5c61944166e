#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lib/text/tokenizer.h"

namespace mm::text {

/// Names of the schemes that a tiktoken file may be read by: what the file does not say, its
/// pattern and its special tokens.
std::vector<std::string> tiktoken_schemes();

/// True if the first line is base 64, a blank and a number.
bool looks_like_tiktoken(std::string_view content);

/// A tiktoken file: a line a piece, its bytes in base 64, a blank, its rank, which is its id. The
/// scheme is options.scheme, else the one with as many ranks.
/// Throws DataError with `origin` for lines that are not so, ids twice, or an unknown scheme.
std::unique_ptr<Tokenizer> parse_tiktoken(std::string_view content, std::string_view origin,
                                          const TokenizerOptions& options);

}  // namespace mm::text
