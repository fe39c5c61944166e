#pragma once
#include "lib/model/diffusion_parts.h"

namespace mm::model {

/// Appends the blocks of SD3's MMDiT: "embeddings" ("tokens.0"; time and pooled caption to
/// "conditioning" [N, h]), "captions" ("caption" [N, L, h]), one block a layer with joint attention
/// over [picture; text] ("tokens.1", "text.1" ...; the last layer has no text output), head.
/// Parameter names are those of diffusers' SD3Transformer2DModel; its continuous norms are (scale,
/// shift).
void add_mmdit(Model& model, const DiffusionBuild& build);

}  // namespace mm::model
