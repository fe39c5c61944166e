#pragma once
#include "lib/model/block.h"
#include "lib/model/llava_config.h"

namespace mm::model {

// Qwen2.5-VL's tower as blocks. N patches of pictures of any size, V vision hidden size, C decoder
// hidden size, m = VisionConfig::merge.

/// Appends the tower: one block for the patches (a convolution over two frames, here one picture
/// twice, without bias), one per layer (RMSNorm, fused q, k, v with bias, rotary positions of row
/// and column, attention in windows or over the picture, gated SiLU with bias), one for the merger
/// (RMSNorm, m x m neighbours as one row, linear, exact GELU, linear), which counts as the
/// projector. Reads Batch::pixel_values and patch_layout. Returns the slot "features", [N / m^2,
/// C] in picture order. `prefix` ends in a dot ("visual.").
Slot add_qwen_vision(Model& model, const VisionConfig& config, const std::string& prefix);

}  // namespace mm::model
