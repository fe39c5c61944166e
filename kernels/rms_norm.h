#pragma once
#include <cmath>

#include "kernels/element.h"

namespace mm::kernels {

// RMSNorm (Zhang and Sennrich, "Root mean square layer normalization", NeurIPS 2019) behind a
// residual sum. R rows, C columns; row by row
//   s = x + residual (rounded to T; s = x without a residual)
//   y[c] = w[c] s[c] r,   r = 1 / sqrt(mean_c(s^2) + eps)
//   ds[c] = r (g[c] - shat[c] mean_c(g shat)) + d_sum[c],   g = dy w, shat = s r
//   dw[c] = sum over rows of dy[c] shat[c]
// ds is the gradient of both x and residual. Memory-bound: forward reads x, residual and writes s,
// y; backward reads dy, s, d_sum and writes ds. CPU: the same bits for every thread count and
// instruction set. CUDA: sums in another order (1e-6 of the row's norm in fp32), reruns bit-equal.

/// Rows whose weight gradient is summed in one go. The partial sums are added in row order, so that
/// the thread count does not show in the bits.
constexpr int64_t kRmsNormBlockRows = 64;

template <typename A>
MM_HOST_DEVICE inline A rms_norm_scale(A sum_of_squares, int64_t cols, double eps) {
  return A(1) / std::sqrt(sum_of_squares / A(cols) + A(eps));
}
template <typename A>
MM_HOST_DEVICE inline A rms_norm_output(A s, A scale, A w) {
  return s * scale * w;
}
/// `mean` is mean_c(dy w s) * scale = mean_c(g shat).
template <typename A>
MM_HOST_DEVICE inline A rms_norm_input_grad(A dy, A w, A shat, A scale, A mean) {
  return scale * (dy * w - shat * mean);
}

/// All [rows, cols] but w [cols] and r [rows]. `residual` and `sum` are both given or both null.
template <typename T>
struct RmsNormForward {
  const T *x, *residual, *w;
  double eps;
  T *sum, *y;
  Acc<T>* r;
};
template <typename T>
void rms_norm_forward(Shape shape, const RmsNormForward<T>& p);
void rms_norm_forward_reference(Shape shape, const RmsNormForward<double>& p);

/// `s` is what was normalised. `d_sum` may be null. Adds to `dw` [cols]; callers split rows over
/// threads by blocks of kRmsNormBlockRows with a dw each.
template <typename T>
struct RmsNormBackward {
  const T *dy, *d_sum, *s, *w;
  const Acc<T>* r;
  T* dx;
  Acc<T>* dw;
};
template <typename T>
void rms_norm_backward(Shape shape, const RmsNormBackward<T>& p);
void rms_norm_backward_reference(Shape shape, const RmsNormBackward<double>& p);

// CUDA twins: device pointers, asynchronous on `stream` (a cudaStream_t); the cudaError_t of the
// launch, 0 when it was accepted. `partial` is scratch, [ceil(rows / kRmsNormBlockRows), cols]; dw
// is written, not added to.
extern "C" int mm_rms_norm_forward_cuda_f32(const Shape&, const RmsNormForward<float>&,
                                            void* stream);
extern "C" int mm_rms_norm_forward_cuda_bf16(const Shape&, const RmsNormForward<Bf16>&,
                                             void* stream);
extern "C" int mm_rms_norm_backward_cuda_f32(const Shape&, const RmsNormBackward<float>&,
                                             float* partial, void* stream);
extern "C" int mm_rms_norm_backward_cuda_bf16(const Shape&, const RmsNormBackward<Bf16>&,
                                              float* partial, void* stream);

}  // namespace mm::kernels
