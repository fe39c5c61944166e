#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace mm::model {

/// Target value of a position that has none.
inline constexpr int64_t kNoTarget = -100;

/// What a row of the loss is multiplied by, and what it was.
struct RowTerms {
  at::Tensor weights;  ///< [n] fp32 (float64 for float64 input); undefined: all are 1
  at::Tensor losses;   ///< [n] of the same type: receives each row's loss, without its weight;
                       ///< undefined: not wanted
};

/// Sum over rows of -log softmax(hidden W^T)[target], each times its weight: hidden [n, C], weight
/// [vocab, C], targets [n] int64 in [0, vocab). Returns a scalar, fp32 (float64 for float64 input);
/// 0 for n = 0. Logits are made for at most `max_logit_elements` elements at a time (at least one
/// row), in the dtype of the product, their softmax in fp32. When a gradient is wanted it is
/// computed on the way, chunk by chunk, so that logits are never kept nor made twice: the backward
/// only scales, in the type of the loss, and rounds to hidden's dtype last, so that a loss scale
/// reaches gradients that fp16 would have lost. Kept until then: [n, C] and [vocab, C] in the type
/// of the products. Differentiable in hidden and weight.
at::Tensor linear_cross_entropy(const at::Tensor& hidden, const at::Tensor& weight,
                                const at::Tensor& targets, int64_t max_logit_elements,
                                const RowTerms& rows = {});

/// The same with all logits at once under autograd: the reference.
at::Tensor linear_cross_entropy_reference(const at::Tensor& hidden, const at::Tensor& weight,
                                          const at::Tensor& targets);

}  // namespace mm::model
