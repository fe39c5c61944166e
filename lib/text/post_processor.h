#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

namespace mm::text {

/// Ids that a tokenizer's file asks for around a whole text: begin tokens, end tokens.
struct Wrapping {
  std::vector<int32_t> before, after;
};

/// Reads the "post_processor" of a tokenizer.json (null: nothing is added): TemplateProcessing (the
/// form for one text), BertProcessing, RobertaProcessing, ByteLevel, Sequence. Throws DataError
/// naming what is unknown.
Wrapping read_post_processor(const nlohmann::json& json, std::string_view origin);

}  // namespace mm::text
