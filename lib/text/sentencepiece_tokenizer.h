#pragma once
#include <memory>
#include <string_view>

#include "lib/text/tokenizer.h"

namespace mm::text {

/// A SentencePiece model (BPE or unigram). Marks: the model's control pieces (bos and eos among
/// them), and options.extra_marks.
std::unique_ptr<Tokenizer> parse_sentencepiece(std::string_view model, std::string_view origin,
                                               const TokenizerOptions& options);

}  // namespace mm::text
