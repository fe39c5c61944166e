#pragma once
#include "lib/model/config_section.h"
#include "lib/model/llava_config.h"

namespace mm::model {

/// The decoder's part of a config.json, in either spelling: transformers 5 (`rope_parameters`) or
/// the published one (`rope_theta`). `type` is its model_type where the section names none.
TextConfig read_text_config(const Section& section, const std::string& type = "llama");
/// The published spelling; read back it gives the same configuration.
Json text_config_json(const TextConfig& config);

}  // namespace mm::model
