#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace mm::model {

/// Sizes of a micro-batch that costs and memory depend on; known from the plan before any data is
/// read.
struct Sizes {
  int64_t tokens = 0;  ///< T, picture placeholders included
  int64_t samples = 0;
  int64_t images = 0;          ///< I
  int64_t patches = 0;         ///< per picture, as the language model sees them
  int64_t targets = 0;         ///< positions with a target
  double attention_pairs = 0;  ///< sum over samples of s * (s + 1) / 2
};

/// One micro-batch as tensors: several samples packed in one row, no attention across them. T
/// tokens, I pictures. An empty micro-batch (T = 0 or I = 0) is legal everywhere: its losses are 0,
/// its gradients zero.
struct Batch {
  at::Tensor tokens;  ///< [T] int64; placeholders hold the image token id
  at::Tensor
      targets;  ///< [T] int64; next token of the same sample where it is trainable, else -100
  at::Tensor positions;             ///< [T] int64; from 0 in each sample
  std::vector<int64_t> cu_seqlens;  ///< [samples + 1], from 0 to T
  at::Tensor image_token_index;     ///< [I * patches] int64: rows of `tokens` that the projected
                                    ///< features replace, in order
  at::Tensor pixel_values;          ///< [I, 3, H, W], normalised, compute dtype
  Sizes sizes;
  bool want_logits = false;
};

}  // namespace mm::model
