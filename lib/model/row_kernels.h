#pragma once
#include <cstdint>

namespace mm::model::row_kernels {

// Memory-bound operations of the transformer layers as one pass each, for contiguous CPU memory. T
// is double, float or Bf16; the arithmetic is in Acc<T>: double for double, else float. Results
// depend on neither thread count nor vector width (no contraction, fixed lanes). Each function
// works on the range it is given, so callers may split rows over threads. No LibTorch here: plain
// pointers.

/// Storage of a bf16 element.
struct Bf16 {
  uint16_t bits;
};

template <typename T>
struct AccOf {
  using type = float;
};
template <>
struct AccOf<double> {
  using type = double;
};
template <typename T>
using Acc = typename AccOf<T>::type;

/// Rows of `cols` elements.
struct Shape {
  int64_t rows = 0, cols = 0;
};

/// y = w * x * r, r = 1 / sqrt(mean(x^2) + eps); keeps r [rows].
template <typename T>
void rms_norm_forward(Shape shape, const T* x, const T* w, double eps, T* y, Acc<T>* r);

/// dx = r * (g - xhat * mean(g * xhat)), g = dy * w, xhat = x * r; adds sum over rows of dy * xhat
/// to dw [cols].
template <typename T>
struct RmsNormBackward {
  const T *dy, *x, *w;
  const Acc<T>* r;
  T* dx;
  Acc<T>* dw;
};
template <typename T>
void rms_norm_backward(Shape shape, const RmsNormBackward<T>& p);

/// y = silu(gate) * up, element by element.
template <typename T>
void swiglu_forward(int64_t count, const T* gate, const T* up, T* y);
/// d_gate = dy * up * s * (1 + gate * (1 - s)), d_up = dy * gate * s, s = sigmoid(gate).
template <typename T>
struct SwigluBackward {
  const T *dy, *gate, *up;
  T *d_gate, *d_up;
};
template <typename T>
void swiglu_backward(int64_t count, const SwigluBackward<T>& p);

/// y = x * sigmoid(1.702 x).
template <typename T>
void quick_gelu_forward(int64_t count, const T* x, T* y);
/// dx = dy * s * (1 + 1.702 x (1 - s)).
template <typename T>
void quick_gelu_backward(int64_t count, const T* dy, const T* x, T* dx);

/// Rotates the halves of each head of each token: x, y [tokens, heads, 2 * half], cos and sin
/// [tokens, half]. `direction` -1 rotates back, which is the gradient.
struct RopeShape {
  int64_t tokens = 0, heads = 0, half = 0;
  int direction = 1;
};
template <typename T>
void rope(RopeShape shape, const T* x, const Acc<T>* cos, const Acc<T>* sin, T* y);

}  // namespace mm::model::row_kernels
