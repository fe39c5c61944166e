#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lib/model/llava_config.h"
#include "lib/text/tokenizer.h"

namespace mm::run {

/// Ids that end a text: all of the configuration, and those of `generation_config` (a
/// generation_config.json; absent: none). Throws DataError naming the file for other JSON.
std::vector<int64_t> stop_tokens_of(const model::TextConfig& config,
                                    const std::filesystem::path& generation_config);

/// Adds what closes an answer of a chat template (its name or definition) where that is one token:
/// {eos}, a mark of the tokenizer in front, or a line end that the tokenizer keeps as such. A close
/// of several tokens, or an unknown template, adds nothing.
void add_template_stop(const std::string& chat_template, const text::Tokenizer& tokenizer,
                       std::vector<int64_t>& stops);

}  // namespace mm::run
