#pragma once
#include "lib/model/block.h"
#include "lib/model/llava_config.h"

namespace mm::model {

/// LLaVA as blocks, in program order: vision embeddings, ViT layers up to the feature layer,
/// projector, for LLaVA-NeXT and OneVision the arrangement of tiles, token embedding with the
/// projected features spliced in, decoder layers, head with the loss; Qwen2.5-VL as build_qwen_vl
/// has it. Slots that tests and tools look at: "features" [I * patches, C], "hidden.0" (embedded
/// tokens) ... "hidden.L" [T, C] before the final norm, "loss", "logits". Parameter names are those
/// of published llava-hf files. One segment a block: what tensor = 1 needs.
Model build_llava(const LlavaConfig& config);

}  // namespace mm::model
