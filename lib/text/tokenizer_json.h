#pragma once
#include <memory>
#include <string_view>

#include "lib/text/tokenizer.h"

namespace mm::text {

/// A tokenizer.json of the Hugging Face tokenizers library, as far as models here need it:
/// - BPE, byte level: pre-tokenizer ByteLevel, or Split (Llama-3 or Qwen2 pattern) then ByteLevel;
/// normaliser none or NFC.
/// - WordLevel: pre-tokenizer WhitespaceSplit or Metaspace; no normaliser.
/// Anything else is refused by name. bos, eos, unk and pad are found among the added tokens by
/// their usual spellings.
std::unique_ptr<Tokenizer> parse_tokenizer_json(std::string_view json, std::string_view origin,
                                                const TokenizerOptions& options);

}  // namespace mm::text
