#pragma once
#include <memory>
#include <string_view>

#include "lib/text/tokenizer.h"

namespace mm::text {

/// A SentencePiece model (BPE or unigram). Marks: <s> and </s> by the model's bos and eos, and
/// options.extra_marks.
std::unique_ptr<Tokenizer> parse_sentencepiece(std::string_view model, std::string_view origin,
                                               const TokenizerOptions& options);

}  // namespace mm::text
