#pragma once
#include <ATen/core/Tensor.h>

namespace mm::model {

// Adaptive layer norm of diffusion transformers; formulas and passes: kernels/ada_norm.h. N
// pictures of P rows, h columns. All operands of one dtype; statistics in fp32 (float64 for float64
// x), results rounded once. Differentiable in every tensor; N or P may be 0.

/// LayerNorm without weights, times 1 + scale, plus shift: x [N, P, h], shift and scale [N, 1, h],
/// views into one modulation or not.
at::Tensor modulated_norm(const at::Tensor& x, const at::Tensor& shift, const at::Tensor& scale,
                          double eps);
/// x + gate * f: x, f [N, P, h], gate [N, 1, h].
at::Tensor gated_add(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& f);

/// The same from plain operations under autograd, kept as the references and for what the fused
/// ones do not take.
at::Tensor modulated_norm_reference(const at::Tensor& x, const at::Tensor& shift,
                                    const at::Tensor& scale, double eps);
at::Tensor gated_add_reference(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& f);

}  // namespace mm::model
