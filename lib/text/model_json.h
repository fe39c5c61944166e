#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "lib/text/pipeline_tokenizer.h"

namespace mm::text {

/// Reads the "model" of a tokenizer.json into `parts` (vocabulary, model, unk): BPE, WordLevel,
/// WordPiece or Unigram. Reads parts.pre_tokenizer (byte level or not) and may add a step to it.
/// Throws DataError naming what is unknown.
void read_model(const nlohmann::json& model, std::string_view origin, TokenizerParts& parts);

/// An id of a file: an integer from 0 to 16,000,000. Throws DataError naming the piece.
int32_t checked_id(const nlohmann::json& value, std::string_view piece, std::string_view origin);

}  // namespace mm::text
