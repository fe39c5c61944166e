#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lib/model/block.h"
#include "lib/model/declare_params.h"
#include "lib/model/diffusion_config.h"
#include "lib/model/diffusion_input.h"
#include "lib/model/objective.h"
#include "lib/model/position_table.h"

// What the diffusion transformers share. N pictures [N, C, H, W] of P = (H / p)(W / p) patches.
namespace mm::model {

/// [N, C, H, W] -> [N, P, C * p * p], in the element order of a convolution's weight. Throws
/// DataError unless p divides H and W.
at::Tensor unfold_patches(const at::Tensor& pictures, int64_t patch);
/// [N, P, p * p * C] -> [N, C, rows * p, columns * p]: (row, column, patch row, patch column,
/// channel), as the last layer writes them.
at::Tensor fold_patches(const at::Tensor& tokens, int64_t patch, int64_t rows, int64_t columns);

/// [N, count * h] (or [N, count, h]) -> `count` tensors [N, 1, h].
std::vector<at::Tensor> modulation_parts(const at::Tensor& modulation, int64_t count);

/// Linear, tanh-GELU, linear: "NAME.net.0.proj", "NAME.net.2".
struct FeedForward {
  Linear in, out;
};
FeedForward declare_feed_forward(const DeclareParams& declare, const std::string& name,
                                 int64_t hidden);
at::Tensor apply(const FeedForward& layer, const ParamView& params, const at::Tensor& x);
void append_params(std::vector<ParamId>& list, const FeedForward& layer);

/// The micro-batch's input with everything that `config` reads defined: no pictures where
/// Batch::diffusion is null; times from sigmas and the reverse where one is missing. Throws
/// InternalError for a missing tensor.
DiffusionInput diffusion_input(const DiffusionConfig& config, const Objective& objective,
                               const Batch& batch);

/// Everything that a family's segments are made from.
struct DiffusionBuild {
  DiffusionConfig config;
  std::shared_ptr<const Process> process;
  Slot clean = -1;     ///< [N, C, H, W] made by earlier blocks, or -1: DiffusionInput::clean
  Slot captions = -1;  ///< [N, L, D] made by earlier blocks, or -1: stored ones

  DiffusionInput input(const Batch& batch) const {
    return diffusion_input(config, process->objective(), batch);
  }
  /// Clean pictures in the objective's dtype; `in`: the segment's inputs, that of `clean` last.
  at::Tensor clean_pictures(const DiffusionInput& input, std::span<const at::Tensor> in) const;
  /// What the model sees: DiffusionInput::noisy, or the objective's of clean pictures and noise.
  at::Tensor noisy_pictures(const Batch& batch, std::span<const at::Tensor> in) const;
};

/// Picture to tokens: "pos_embed.proj" and fixed positions, or with SD3 a stored table.
struct PatchEmbedding {
  Linear proj;
  ParamId table = -1;
  std::shared_ptr<PositionTables> positions;
};
PatchEmbedding declare_patch_embedding(Model& model, const DiffusionConfig& config);
std::vector<ParamId> params_of(const PatchEmbedding& embedding);
/// Noisy pictures [N, C, H, W] -> [N, P, h] in the dtype of the weights.
at::Tensor apply(const PatchEmbedding& embedding, const DiffusionConfig& config,
                 const ParamView& params, const at::Tensor& pictures);

}  // namespace mm::model
