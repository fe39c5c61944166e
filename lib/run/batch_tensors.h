#pragma once
#include <ATen/core/ScalarType.h>

#include <array>
#include <vector>

#include "lib/data/micro_batch.h"
#include "lib/model/batch.h"
#include "lib/model/llava_config.h"

namespace mm::run {

/// Channel means and deviations in units of [0, 1], as the data set was packed for (CLIP's by
/// default).
struct PixelNorm {
  std::array<float, 3> mean{0.48145466f, 0.4578275f, 0.40821073f};
  std::array<float, 3> std{0.26862954f, 0.26130258f, 0.27577711f};
};

/// From a recipe's lists of three.
PixelNorm pixel_norm(const std::vector<double>& mean, const std::vector<double>& std);

/// Ids as int64 [n].
at::Tensor ids_tensor(const std::vector<int32_t>& values);

/// Pictures of one size, u8 to (byte / 255 - mean) / std: [I, 3, H, W] in `dtype`.
at::Tensor same_sized_pixels(const data::MicroBatch& micro_batch, at::ScalarType dtype,
                             const PixelNorm& norm);

/// Copies a loader's micro-batch into tensors: ids to int64, pixels u8 to (byte/255 - mean) / std
/// in `dtype`, as the model takes them: [I, 3, H, W], or the rows of patches of pictures of any
/// size. Pictures that have tiles or a size of their own bring their shapes, and for Qwen-VL the
/// layout of patches and the positions; those without a token (stand-ins for damaged ones) are left
/// out. An empty micro-batch gives zero-length tensors of the right rank. Throws InternalError when
/// the pictures are not what the model takes; configure_model has refused such data sets.
model::Batch to_batch(const data::MicroBatch& micro_batch, const model::LlavaConfig& config,
                      at::ScalarType dtype, const PixelNorm& norm = {});

/// What a micro-batch's pictures cost beyond their number, which the plan does not know:
/// patch_rows, picture_pairs and window_pairs of pictures of any size; all 0 for other models.
model::Sizes picture_sizes(const data::MicroBatch& micro_batch, const model::LlavaConfig& config);

}  // namespace mm::run
