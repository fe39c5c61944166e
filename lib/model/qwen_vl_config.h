#pragma once
#include "lib/model/config_section.h"
#include "lib/model/llava_config.h"

namespace mm::model {

/// Qwen2.5-VL's config.json: the decoder's keys at the top, as published, or in `text_config`.
void read_qwen_vl_config(const Section& section, LlavaConfig& config);
/// The published spelling; read back it gives the same configuration.
Json qwen_vl_json(const LlavaConfig& config);

/// Throws DataError with `origin` when windows, merging, rotary sections or widths do not fit.
void check_qwen_vl_config(const LlavaConfig& config, const std::string& origin);

}  // namespace mm::model
