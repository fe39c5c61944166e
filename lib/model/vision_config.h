#pragma once
#include "lib/model/config_section.h"
#include "lib/model/llava_config.h"

namespace mm::model {

/// The tower's part of a config.json: CLIP's or SigLIP's.
VisionConfig read_vision_config(const Section& section);
/// The published spelling; read back it gives the same configuration.
Json vision_config_json(const VisionConfig& config);

}  // namespace mm::model
