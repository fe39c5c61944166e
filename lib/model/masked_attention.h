#pragma once
#include <ATen/core/Tensor.h>

namespace mm::model {

/// Attention of padded rows in both directions: scores get `bias` added, and keys with a false
/// `mask` get the lowest finite number, so that a row without any key stays finite. q, k, v
/// [N, L, H, D]; mask [N, L] bool; bias [1, H, L, L] or undefined. Returns [N, L, H * D].
/// Differentiable.
struct PaddedAttention {
  at::Tensor mask, bias;
  double scale = 1;
};
at::Tensor padded_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const PaddedAttention& options);
/// Causal over the rows, padding or not, scaled by 1/sqrt(D): padding on the right is never seen.
at::Tensor causal_rows(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);

}  // namespace mm::model
