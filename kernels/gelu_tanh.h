#pragma once
#include "kernels/element.h"

namespace mm::kernels {

// GELU by its tanh approximation (Hendrycks and Gimpel, "Gaussian error linear units", 2016,
// section 2), element by element, as a sigmoid: 0.5 (1 + tanh(u)) = sigmoid(2 u).
//   v = 2 sqrt(2 / pi) (x + 0.044715 x^3),   y = x s,   s = sigmoid(v)
//   dx = dy s (1 + x (1 - s) v'),   v' = 2 sqrt(2 / pi) (1 + 0.134145 x^2)
// Memory-bound. All twins agree to 1e-6 of the value in fp32.

constexpr double kGeluSlope = 1.5957691216057308, kGeluCubic = 0.044715;

template <typename A>
MM_HOST_DEVICE inline A gelu_tanh_value(A x) {
  return x * sigmoid(A(kGeluSlope) * x * (A(1) + A(kGeluCubic) * x * x));
}
/// Below -10 the sigmoid is 0 in fp32, and x^3 would overflow before it is needed. (One bound: two
/// keep g++ 12 from making vector code. Beyond 1e19 the gradient is no number, as LibTorch's.)
template <typename A>
MM_HOST_DEVICE inline A gelu_tanh_grad(A dy, A x) {
  const A c = x < A(-10) ? A(-10) : x, square = c * c,
          s = sigmoid(A(kGeluSlope) * c * (A(1) + A(kGeluCubic) * square));
  return dy * s * (A(1) + c * (A(1) - s) * A(kGeluSlope) * (A(1) + A(3 * kGeluCubic) * square));
}

template <typename T>
void gelu_tanh_forward(int64_t count, const T* x, T* y);
template <typename T>
void gelu_tanh_backward(int64_t count, const T* dy, const T* x, T* dx);  ///< dx may be dy or x
void gelu_tanh_forward_reference(int64_t count, const double* x, double* y);
void gelu_tanh_backward_reference(int64_t count, const double* dy, const double* x, double* dx);

// CUDA twins; conventions as in rms_norm.h.
extern "C" int mm_gelu_tanh_forward_cuda_f32(int64_t count, const float* x, float* y, void* stream);
extern "C" int mm_gelu_tanh_forward_cuda_bf16(int64_t count, const Bf16* x, Bf16* y, void* stream);
extern "C" int mm_gelu_tanh_backward_cuda_f32(int64_t count, const float* dy, const float* x,
                                              float* dx, void* stream);
extern "C" int mm_gelu_tanh_backward_cuda_bf16(int64_t count, const Bf16* dy, const Bf16* x,
                                               Bf16* dx, void* stream);

}  // namespace mm::kernels
