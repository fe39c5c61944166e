#pragma once
#include "lib/model/diffusion_parts.h"

namespace mm::model {

/// Appends DiT's blocks: "embeddings" (noisy picture to tokens "tokens.0", time and label to
/// "conditioning" [N, h]), one block a layer ("tokens.1" ...), head. Parameter names are those of
/// diffusers' DiTTransformer2DModel; the time and label embedder is one for all layers, under the
/// name of layer 0, unless config.own_embedders.
void add_dit(Model& model, const DiffusionBuild& build);

}  // namespace mm::model
