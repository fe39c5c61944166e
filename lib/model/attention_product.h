#pragma once
#include <ATen/core/Tensor.h>

namespace mm::model {

/// Softmax attention, scores scaled by 1 / sqrt(D): q [n, H, S, D], k and v [n, K, L, D], H a
/// multiple of K (query heads in groups on one key head). Returns [n, H, S, D]. Differentiable.
/// n, S and L are above 0.
///
/// LibTorch's attention, for what lib/model/fused_attention.h does not take: masks, queries and
/// keys of different number, other devices. On a CPU that multiplies no bf16 (lib/model/products.h)
/// 16-bit operands are widened, attention runs in fp32 and the result is rounded once.
struct AttentionRule {
  bool causal = false;  ///< from the top left corner; not together with `mask`
  at::Tensor mask;      ///< bool, true keeps, to be broadcast to [n, H, S, L]; or undefined
};
at::Tensor attention_product(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                             const AttentionRule& rule = {});

}  // namespace mm::model
