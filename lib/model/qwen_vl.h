#pragma once
#include "lib/model/block.h"
#include "lib/model/llava_config.h"

namespace mm::model {

/// Qwen2.5-VL as blocks: tower and merger (lib/model/qwen_vision.h), token embedding with the
/// merged features spliced in, decoder layers whose rotary positions are Batch::axis_positions,
/// head with the loss. Slots as build_llava's. Parameter names are those of the published files
/// ("visual...", "model.layers...", "lm_head").
Model build_qwen_vl(const LlavaConfig& config);

}  // namespace mm::model
