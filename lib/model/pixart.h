#pragma once
#include "lib/model/diffusion_parts.h"

namespace mm::model {

/// Appends PixArt's blocks: "embeddings" (tokens "tokens.0", the embedded time and sizes
/// "conditioning" [N, h], the modulation of all layers "modulation" [N, 6h]), "captions" ("caption"
/// [N, L, h]), one block a layer ("tokens.1" ...: self attention, cross attention without norm or
/// gate, MLP), head. Parameter names are those of diffusers' PixArtTransformer2DModel.
void add_pixart(Model& model, const DiffusionBuild& build);

}  // namespace mm::model
