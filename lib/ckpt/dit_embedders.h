#pragma once
#include "lib/ckpt/weight_source.h"

namespace mm::ckpt {

// DiT has one time and label embedder. diffusers' DiTTransformer2DModel repeats it in every block
// ("transformer_blocks.N.norm1.emb..."); we keep that of block 0. Nothing to do for other models.

/// Drops the copies of blocks 1 and up when each equals block 0's, with a note. Where they differ,
/// the model has one embedder a block: all stay, and config.json gets "own_embedders": true.
void drop_repeated_embedders(WeightSource& source);

/// Gives every block a copy of block 0's, unless the blocks have their own.
void repeat_embedders(WeightSource& source);

}  // namespace mm::ckpt
