#pragma once
#include <ATen/core/Tensor.h>

namespace mm::model {

/// silu(gate) * up, silu(g) = g * sigmoid(g); both [rows, width], same shape and dtype out.
/// Differentiable in both.
at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up);
/// The same from plain operations under autograd, kept as the reference.
at::Tensor swiglu_reference(const at::Tensor& gate, const at::Tensor& up);

/// x * sigmoid(1.702 x), what CLIP was trained with; any shape.
at::Tensor quick_gelu(const at::Tensor& x);
/// The same from plain operations under autograd, kept as the reference.
at::Tensor quick_gelu_reference(const at::Tensor& x);

/// GELU by its tanh approximation; any shape.
at::Tensor gelu_tanh(const at::Tensor& x);

}  // namespace mm::model
