#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace mm::model {

/// Sizes of a micro-batch that costs and memory depend on; known from the plan before any data is
/// read.
struct Sizes {
  int64_t tokens = 0;  ///< T, picture placeholders included
  int64_t samples = 0;
  int64_t images = 0;          ///< I; tiles, where pictures have several
  int64_t patches = 0;         ///< per picture or tile, as the projector gives them
  int64_t targets = 0;         ///< positions with a target
  double attention_pairs = 0;  ///< sum over samples of s * (s + 1) / 2

  // Of pictures that each have their own size; 0 elsewhere.
  int64_t patch_rows = 0;    ///< patches of all pictures inside the tower
  double picture_pairs = 0;  ///< sum over pictures of patches^2
  double window_pairs = 0;   ///< sum over windows of patches^2
};

/// A picture that has several tiles, or a size of its own.
struct PictureShape {
  int64_t tiles = 1;              ///< rows of Batch::pixel_values; the first shows the whole
  int64_t rows = 1, columns = 1;  ///< of the other tiles, which lie over the picture row by row
  int64_t tokens = 0;             ///< its placeholders; 0: none of its features is used
  int64_t height = 0, width = 0;  ///< pixels of a tile
  int64_t original_height = 0, original_width = 0;  ///< pixels, before any resizing
};

struct PatchLayout;
struct DiffusionInput;
struct RowDraws;

/// One micro-batch as tensors: several samples packed in one row, no attention across them. T
/// tokens, I pictures. An empty micro-batch (T = 0 or I = 0) is legal everywhere: its losses are 0,
/// its gradients zero.
struct Batch {
  at::Tensor tokens;  ///< [T] int64; placeholders hold the image token id
  at::Tensor
      targets;  ///< [T] int64; next token of the same sample where it is trainable, else -100
  /// [T] fp32 (float64 in float64 runs): what the loss of each position is multiplied by, whatever
  /// stands where there is no target; undefined: all are 1.
  at::Tensor target_weights;
  at::Tensor positions;             ///< [T] int64; from 0 in each sample
  std::vector<int64_t> cu_seqlens;  ///< [samples + 1], from 0 to T
  at::Tensor image_token_index;     ///< [I * patches] int64: rows of `tokens` that the projected
                                    ///< features replace, in order
  at::Tensor pixel_values;          ///< [I, 3, H, W], normalised, compute dtype
  /// Of models with tiles or pictures of any size; image_token_index then has the sum of their
  /// tokens.
  std::vector<PictureShape> pictures;
  /// [3, T] int64: rotary positions in time, height and width (Qwen-VL); undefined: `positions` are
  /// all three.
  at::Tensor axis_positions;
  /// Of models with pictures of any size: where patches lie. Then pixel_values is [patch_rows, 3 *
  /// patch * patch].
  std::shared_ptr<const PatchLayout> patch_layout;
  /// Of diffusion models: pictures, times, noise and conditions (lib/model/diffusion_input.h).
  std::shared_ptr<const DiffusionInput> diffusion;
  /// In training of adapters with dropout (lib/model/adapter_dropout.h); null: nothing is dropped.
  std::shared_ptr<const RowDraws> row_draws;
  Sizes sizes;
  bool want_logits = false;
};

}  // namespace mm::model
