#pragma once
#include "lib/model/block.h"
#include "lib/model/llava_config.h"

namespace mm::model {

// CLIP's vision tower as blocks. I pictures, P = patches + 1 (class token first), V = vision hidden
// size.

/// Appends the tower to `model`: one block for the embedding (patches without bias, class token,
/// learned positions, pre_layrnorm) and one per layer up to `layers_run`. All layers' parameters
/// and post_layernorm's are declared, as they are in the files. Reads Batch::pixel_values. Returns
/// the slot of the feature layer, [I, P, V]. `prefix` ends in a dot ("vision_tower.vision_model.").
Slot add_clip_vit(Model& model, const VisionConfig& config, const std::string& prefix,
                  int64_t layers_run);

}  // namespace mm::model
