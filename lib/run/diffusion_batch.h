#pragma once
#include <ATen/core/ScalarType.h>

#include "lib/data/micro_batch.h"
#include "lib/model/batch.h"
#include "lib/model/diffusion_config.h"
#include "lib/model/objective.h"
#include "lib/run/batch_tensors.h"
#include "lib/run/encoded_set.h"

namespace mm::run {

/// What a diffusion batch's random draws depend on, besides the sample.
struct DiffusionDraws {
  uint64_t seed = 0, epoch = 0;
  double label_drop = 0;
};

struct DiffusionBatchInputs {
  const model::DiffusionConfig& config;
  const model::Objective& objective;
  const PixelNorm& norm;
  DiffusionDraws draws;
  const EncodedSet* encoded = nullptr;  ///< what stands in place of pixels, captions or both
  at::ScalarType dtype = at::kFloat;    ///< of clean pictures, noise and times
};

/// A micro-batch of a bucketed set with its noise, times and dropped conditions, each a pure
/// function of (seed, epoch, sample id): the same on whatever rank and in whatever batch a sample
/// is met. Fillers have weight 0. An empty micro-batch gives zero-length tensors.
model::Batch to_diffusion_batch(const data::MicroBatch& micro_batch,
                                const DiffusionBatchInputs& inputs);

/// What a micro-batch of equal pictures costs; `height` and `width` in what the model sees: pixels,
/// or latents.
model::Sizes diffusion_sizes(const model::DiffusionConfig& config, int64_t pictures, int64_t height,
                             int64_t width, int64_t caption_tokens);

}  // namespace mm::run
