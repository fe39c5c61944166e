#pragma once
#include "lib/model/block.h"
#include "lib/model/diffusion_config.h"

namespace mm::model {

/// Appends the small text encoder (DiffusionConfig::text) as blocks of Part::kTextEncoder: a token
/// and a position table, pre-norm layers with attention in both directions inside each caption,
/// none across captions and none to padding, since captions are packed (field case C55). Reads
/// Batch::tokens and cu_seqlens, one sample a picture; a caption that is dropped or empty is one
/// learned row. Returns the slot "text_encoder.captions" [N, L, D], padded with zeros.
Slot add_caption_encoder(Model& model, const DiffusionConfig& config);

}  // namespace mm::model
