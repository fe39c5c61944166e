#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace mm::model {

/// Full attention inside each of many runs of rows, none across them. q, k, v [N, H, D]; `borders`
/// [runs + 1] from 0 to N. Returns [N, H * D]. Scores are scaled by 1/sqrt(D).
/// Differentiable. Where the fused op does not take q (lib/model/fused_attention.h), runs of equal
/// length go together as one batch, without padding.
at::Tensor segment_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                             const std::vector<int64_t>& borders);
/// The same, one run at a time: the reference.
at::Tensor segment_attention_reference(const at::Tensor& q, const at::Tensor& k,
                                       const at::Tensor& v, const std::vector<int64_t>& borders);

}  // namespace mm::model
