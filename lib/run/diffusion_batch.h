#pragma once
#include <ATen/core/ScalarType.h>

#include "lib/data/micro_batch.h"
#include "lib/model/batch.h"
#include "lib/model/diffusion_config.h"
#include "lib/model/diffusion_input.h"
#include "lib/model/objective.h"
#include "lib/run/batch_tensors.h"
#include "lib/run/encoded_set.h"
#include "lib/run/frozen_encoders.h"

namespace mm::run {

/// What a diffusion batch's random draws depend on, besides the sample.
struct DiffusionDraws {
  uint64_t seed = 0, epoch = 0;
  double label_drop = 0;
  std::vector<EncoderDrop> encoder_drop = {};  ///< by text encoder; empty: none by itself
};

struct DiffusionBatchInputs {
  const model::DiffusionConfig& config;
  const model::Objective& objective;
  const PixelNorm& norm;
  DiffusionDraws draws;
  const EncodedSet* encoded = nullptr;  ///< what stands in place of pixels, captions or both
  const Encoders* online = nullptr;     ///< what encodes of them what is not stored
  int64_t pictures_at_once = 0;         ///< of online.vae, 0: all
  int64_t captions_at_once = 0;         ///< of online.text, 0: all
  at::ScalarType dtype = at::kFloat;    ///< of clean pictures, noise and times
};

/// States of captions, [rows, D] each, as a model takes them: padded with zeros to the longest, cut
/// at what the model reads. Undefined ones stand for no caption.
struct CaptionStates {
  std::vector<at::Tensor> hidden, pooled;
  int64_t width = 0, pooled_width = 0;
};
void set_captions(const CaptionStates& states, const model::DiffusionConfig& config,
                  at::ScalarType dtype, model::DiffusionInput& out);

/// A micro-batch of a bucketed set with its noise, times and dropped conditions, each a pure
/// function of (seed, epoch, sample id): the same on whatever rank and in whatever batch a sample
/// is met. What is encoded here equals what was stored of it, to rounding. Fillers have weight 0.
/// An empty micro-batch gives zero-length tensors.
model::Batch to_diffusion_batch(const data::MicroBatch& micro_batch,
                                const DiffusionBatchInputs& inputs);

/// What a micro-batch of equal pictures costs; `height` and `width` in what the model sees: pixels,
/// or latents.
model::Sizes diffusion_sizes(const model::DiffusionConfig& config, int64_t pictures, int64_t height,
                             int64_t width, int64_t caption_tokens);

}  // namespace mm::run
