#pragma once
#include <ATen/core/ScalarType.h>

#include <array>
#include <vector>

#include "lib/data/micro_batch.h"
#include "lib/model/batch.h"

namespace mm::run {

/// Channel means and deviations in units of [0, 1], as the data set was packed for (CLIP's by
/// default).
struct PixelNorm {
  std::array<float, 3> mean{0.48145466f, 0.4578275f, 0.40821073f};
  std::array<float, 3> std{0.26862954f, 0.26130258f, 0.27577711f};
};

/// From a recipe's lists of three.
PixelNorm pixel_norm(const std::vector<double>& mean, const std::vector<double>& std);

/// Copies a loader's micro-batch into tensors: ids to int64, pixels [I, H, W, 3] u8 to [I, 3, H, W]
/// (byte/255 - mean) / std in `dtype`. An empty micro-batch gives zero-length tensors of the right
/// rank. `image_side` is used when there is no picture.
model::Batch to_batch(const data::MicroBatch& micro_batch, int64_t image_side, at::ScalarType dtype,
                      const PixelNorm& norm = {});

}  // namespace mm::run
