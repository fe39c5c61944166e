#pragma once
#include "lib/model/block.h"
#include "lib/model/diffusion_config.h"

namespace mm::model {

// FLOPs and kept bytes of one micro-batch: Sizes::images pictures, patch_rows patches and
// picture_pairs pairs of patches in all, `tokens` caption tokens. Bytes for 2-byte activations.

/// Patches to tokens, time and condition to h numbers a picture.
SegmentCost embedding_cost(const DiffusionConfig& config, const Sizes& sizes);
SegmentCost dit_layer_cost(const DiffusionConfig& config, const Sizes& sizes);
SegmentCost pixart_layer_cost(const DiffusionConfig& config, const Sizes& sizes);
/// `dual`: with the second attention; `last`: the text stream ends here.
SegmentCost mmdit_layer_cost(const DiffusionConfig& config, const Sizes& sizes, bool dual,
                             bool last);

}  // namespace mm::model
