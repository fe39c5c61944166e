#pragma once
#include <optional>

#include "lib/ckpt/weight_source.h"

namespace mm::ckpt {

/// The text encoder that a PixArt of ours was trained with ("caption_encoder" of its config.json,
/// tensors "text_encoder."), as transformers' MegatronBertModel: layers with their norms in front,
/// attention in both directions, learned positions, tanh-GELU. What it calls last_hidden_state is
/// what the transformer reads; its token types are zeros. The learned row for no caption has no
/// place in it. Nothing for other models.
std::optional<WeightSource> caption_encoder_of(const WeightSource& source);

}  // namespace mm::ckpt
