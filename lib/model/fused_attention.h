#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace mm::model {

/// Whether fused_attention takes tensors like `q`: on a CPU double and float, and bf16 and fp16
/// where LibTorch's own 16-bit products are slow (lib/model/products.h).
bool has_fused_attention(const at::Tensor& q);

/// kernels/packed_attention.h under autograd: attention inside each of many runs of rows, none
/// across them. q [N, H, D], k and v [N, G, D], H a multiple of G; `borders` [runs + 1] from 0 to
/// N > 0. Returns [N, H * D]. Scores are scaled by 1/sqrt(D), arithmetic is in fp32 (double for
/// double); of fp16 the fp32 copies are kept for the backward, of other types no copy is. No
/// padding; a run's bits depend on nothing but the run. Runs and key heads are shared out among
/// threads: one run of two key heads keeps two threads busy.
struct FusedAttention {
  bool causal = false;
  int64_t window = 0;  ///< with `causal`; > 0: a row sees that many rows, itself among them
};
at::Tensor fused_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const std::vector<int64_t>& borders, const FusedAttention& rule = {});

}  // namespace mm::model
