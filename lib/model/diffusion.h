#pragma once
#include "lib/model/block.h"
#include "lib/model/diffusion_config.h"
#include "lib/model/objective.h"

namespace mm::model {

/// A diffusion transformer as blocks of Part::kTransformer (with config.text, blocks of
/// Part::kTextEncoder before them), in program order: embeddings, [captions,] layers, head. Reads
/// Batch::diffusion; slots as add_diffusion_head says, and "conditioning", "tokens.0" ...
/// "tokens.L" [N, P, h]. Throws DataError or UsageError for what does not go together.
Model build_diffusion(const DiffusionConfig& config, const Objective& objective);

/// The same appended to a model, whose slot `clean` [N, C, H, W] holds the clean pictures (a VAE's
/// encoder, add_vae_encoder); -1: DiffusionInput::clean.
void add_diffusion(Model& model, const DiffusionConfig& config, const Objective& objective,
                   Slot clean);

}  // namespace mm::model
