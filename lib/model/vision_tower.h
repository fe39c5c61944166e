#pragma once
#include "lib/model/block.h"
#include "lib/model/llava_config.h"

namespace mm::model {

// A vision tower as blocks. I pictures, P = VisionConfig::rows(), V = vision hidden size.

/// Appends the tower to `model`: one block for the embedding (patches and learned positions; CLIP:
/// class token and pre_layrnorm) and one per layer up to `layers_run`. All layers' parameters,
/// post_layernorm's and the pooling head's are declared, as they are in the files. Reads
/// Batch::pixel_values. Returns the slot of the feature layer, [I, P, V]. `prefix` ends in a dot
/// ("vision_tower.vision_model.").
Slot add_vision_tower(Model& model, const VisionConfig& config, const std::string& prefix,
                      int64_t layers_run);

}  // namespace mm::model
