#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "lib/model/batch.h"
#include "lib/model/llava_config.h"

namespace mm::model {

/// Where the patches of pictures of any size lie (Qwen2.5-VL). N patches; a block is merge x merge
/// neighbouring patches, which lie together in every order. Picture order: block by block along the
/// rows of each picture. Window order, in which the tower runs: window by window along the rows of
/// each picture, blocks along the rows of a window; windows at the right and lower edge are
/// smaller.
struct PatchLayout {
  at::Tensor order;  ///< [N / merge^2] int64: block of picture order at each place of window order
  at::Tensor inverse;      ///< [N / merge^2] int64: place in window order of each block
  at::Tensor row, column;  ///< [N] int64: in patches inside the picture, window order
  std::vector<int64_t> picture_borders,
      window_borders;  ///< first 0, last N, in patches of window order
};

/// Sizes in pixels must be multiples of patch * merge (InternalError). O(N).
PatchLayout layout_patches(std::span<const PictureShape> pictures, const VisionConfig& config);

/// Sets patch_rows, picture_pairs and window_pairs to those of the layout, without making it.
void count_patches(std::span<const PictureShape> pictures, const VisionConfig& config,
                   Sizes& sizes);

/// pixels [3, height, width] -> [N, 3 * patch * patch], rows in picture order; a view's copy.
at::Tensor cut_patches(const at::Tensor& pixels, int64_t patch, int64_t merge);

/// [3, T] rotary positions of packed samples in time, height and width: text counts on in all
/// three; a picture stands still in time and counts its blocks' rows and columns from there; what
/// follows goes on behind the largest of them (M-RoPE, Wang et al. 2024). `image_token_index` [sum
/// of tokens] holds each picture's placeholders in order; `borders` are cu_seqlens.
at::Tensor axis_positions(std::span<const PictureShape> pictures,
                          std::span<const int64_t> image_token_index,
                          std::span<const int64_t> borders, const VisionConfig& config);

/// The position behind the last token of each sample, where a continuation begins.
std::vector<int64_t> next_positions(const Batch& batch);

}  // namespace mm::model
