#pragma once
#include <ATen/core/Tensor.h>

namespace mm::model {

// R rows, C channels; every function keeps the shape and dtype of x, takes x of any rank whose last
// dimension is C, and accepts 0 rows. Statistics are in fp32 (float64 for float64 x).

/// y[r,c] = w[c] * x[r,c] / sqrt(mean_c(x[r,c]^2) + eps). The weight is used as it is (no 1 +).
/// Differentiable in x and w.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);

/// s = x + residual, in their dtype, and its norm, in one pass each way. Differentiable in all
/// three.
struct SumAndNorm {
  at::Tensor sum, norm;
};
SumAndNorm residual_rms_norm(const at::Tensor& x, const at::Tensor& residual,
                             const at::Tensor& weight, double eps);

/// The same from plain operations under autograd: slow, kept as the reference.
at::Tensor rms_norm_reference(const at::Tensor& x, const at::Tensor& weight, double eps);

/// y = w * (x - mean) / sqrt(var + eps) + b over the last dimension.
at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      double eps);

}  // namespace mm::model
