#pragma once
#include <memory>
#include <string_view>

#include "lib/text/tokenizer.h"

namespace mm::text {

/// True for gzip data and for a text that begins as CLIP's file does.
bool looks_like_clip_bpe(std::string_view content);

/// CLIP's bpe_simple_vocab_16e6.txt, gzipped or not: after the first line a merge a line, of which
/// the first 48,894 count. Text is brought to form C, white space becomes one blank, letters lower
/// case; words end with "</w>". `encode_whole` stands between <|startoftext|> and <|endoftext|>.
/// Unlike the original, HTML entities and broken encodings are left as they are (the original
/// unescapes the former and, where it is installed, lets ftfy repair the latter).
/// Throws DataError with `origin`.
std::unique_ptr<Tokenizer> parse_clip_bpe(std::string_view content, std::string_view origin,
                                          const TokenizerOptions& options);

}  // namespace mm::text
