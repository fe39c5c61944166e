#pragma once
#include "kernels/element.h"

namespace mm::kernels {

// The approximation of GELU that CLIP was trained with (Hendrycks and Gimpel, "Gaussian error
// linear units", 2016, section 2), element by element:
//   y = x s,   s = sigmoid(1.702 x);   dx = dy s (1 + 1.702 x (1 - s))
// Memory-bound. All twins agree to 5e-7 of the value in fp32.

template <typename A>
MM_HOST_DEVICE inline A quick_gelu_value(A x) {
  return x * sigmoid(A(1.702) * x);
}
template <typename A>
MM_HOST_DEVICE inline A quick_gelu_grad(A dy, A x) {
  const A v = A(1.702) * x, s = sigmoid(v);
  return dy * s * (A(1) + v * (A(1) - s));
}

template <typename T>
void quick_gelu_forward(int64_t count, const T* x, T* y);
template <typename T>
void quick_gelu_backward(int64_t count, const T* dy, const T* x, T* dx);  ///< dx may be dy or x
void quick_gelu_forward_reference(int64_t count, const double* x, double* y);
void quick_gelu_backward_reference(int64_t count, const double* dy, const double* x, double* dx);

// CUDA twins; conventions as in rms_norm.h.
extern "C" int mm_quick_gelu_forward_cuda_f32(int64_t count, const float* x, float* y,
                                              void* stream);
extern "C" int mm_quick_gelu_forward_cuda_bf16(int64_t count, const Bf16* x, Bf16* y, void* stream);
extern "C" int mm_quick_gelu_backward_cuda_f32(int64_t count, const float* dy, const float* x,
                                               float* dx, void* stream);
extern "C" int mm_quick_gelu_backward_cuda_bf16(int64_t count, const Bf16* dy, const Bf16* x,
                                                Bf16* dx, void* stream);

}  // namespace mm::kernels
