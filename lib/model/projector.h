#pragma once
#include "lib/model/block.h"
#include "lib/model/llava_config.h"

namespace mm::model {

/// Appends LLaVA's projector as one block: features [I, P, V] -> linear, exact (erf) GELU, linear,
/// or one linear layer alone -> [I * patches, H]. The class token is dropped first, unless the
/// configuration keeps it. Names: multi_modal_projector.linear_{1,2}.{weight,bias}, of one layer
/// multi_modal_projector.linear.{weight,bias}. Returns the slot "features", or "tile_features"
/// where pictures have several tiles.
Slot add_projector(Model& model, const LlavaConfig& config, Slot features);

}  // namespace mm::model
