#pragma once
#include "kernels/element.h"

namespace mm::kernels {

// SwiGLU (Shazeer, "GLU variants improve transformer", 2020), element by element:
//   y = silu(gate) up,   silu(g) = g s, s = sigmoid(g)
//   d_gate = dy up s (1 + gate (1 - s)),   d_up = dy gate s
// Memory-bound: forward reads 2 and writes 1 element, backward reads 3 and writes 2. All twins
// agree to 5e-7 of the value in fp32; the CPU twin gives the same bits whatever the split.

template <typename A>
MM_HOST_DEVICE inline A swiglu_value(A gate, A up) {
  return gate * sigmoid(gate) * up;
}
template <typename A>
MM_HOST_DEVICE inline A swiglu_gate_grad(A dy, A gate, A up) {
  const A s = sigmoid(gate);
  return dy * up * s * (A(1) + gate * (A(1) - s));
}
template <typename A>
MM_HOST_DEVICE inline A swiglu_up_grad(A dy, A gate) {
  return dy * gate * sigmoid(gate);
}

template <typename T>
void swiglu_forward(int64_t count, const T* gate, const T* up, T* y);
void swiglu_forward_reference(int64_t count, const double* gate, const double* up, double* y);

/// `d_gate` may be `gate` and `d_up` may be `up`.
template <typename T>
struct SwigluBackward {
  const T *dy, *gate, *up;
  T *d_gate, *d_up;
};
template <typename T>
void swiglu_backward(int64_t count, const SwigluBackward<T>& p);
void swiglu_backward_reference(int64_t count, const SwigluBackward<double>& p);

// CUDA twins; conventions as in rms_norm.h.
extern "C" int mm_swiglu_forward_cuda_f32(int64_t count, const float* gate, const float* up,
                                          float* y, void* stream);
extern "C" int mm_swiglu_forward_cuda_bf16(int64_t count, const Bf16* gate, const Bf16* up, Bf16* y,
                                           void* stream);
extern "C" int mm_swiglu_backward_cuda_f32(int64_t count, const SwigluBackward<float>&,
                                           void* stream);
extern "C" int mm_swiglu_backward_cuda_bf16(int64_t count, const SwigluBackward<Bf16>&,
                                            void* stream);

}  // namespace mm::kernels
