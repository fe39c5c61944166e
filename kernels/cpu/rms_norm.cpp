#include "kernels/rms_norm.h"

namespace mm::kernels {
namespace {

// s = x + residual, or x itself; returns where s lies.
template <typename T>
inline const T* row_sum(int64_t cols, const T* x, const T* residual, T* sum) {
  if (residual == nullptr) return x;
  for (int64_t c = 0; c < cols; ++c) store(load(x[c]) + load(residual[c]), sum[c]);
  return sum;
}

}  // namespace

template <typename T>
MM_CLONES void rms_norm_forward(Shape shape, const RmsNormForward<T>& p) {
  using A = Acc<T>;
  const int64_t cols = shape.cols, whole = cols / kLanes * kLanes;
  const T* w = p.w;
  for (int64_t row = 0; row < shape.rows; ++row) {
    const int64_t at = row * cols;
    const T* s = row_sum(cols, p.x + at, p.residual == nullptr ? nullptr : p.residual + at,
                         p.sum == nullptr ? nullptr : p.sum + at);
    T* y = p.y + at;
    A lanes[kLanes] = {};
    for (int64_t c = 0; c < whole; c += kLanes) {
      for (int l = 0; l < kLanes; ++l) lanes[l] += load(s[c + l]) * load(s[c + l]);
    }
    for (int64_t c = whole; c < cols; ++c) lanes[c - whole] += load(s[c]) * load(s[c]);
    const A scale = rms_norm_scale(sum_lanes(lanes), cols, p.eps);
    p.r[row] = scale;
    for (int64_t c = 0; c < cols; ++c) store(rms_norm_output(load(s[c]), scale, load(w[c])), y[c]);
  }
}

template <typename T>
MM_CLONES void rms_norm_backward(Shape shape, const RmsNormBackward<T>& p) {
  using A = Acc<T>;
  const int64_t cols = shape.cols, whole = cols / kLanes * kLanes;
  const T* w = p.w;
  A* dw = p.dw;
  for (int64_t row = 0; row < shape.rows; ++row) {
    const T *s = p.s + row * cols, *dy = p.dy + row * cols;
    T* dx = p.dx + row * cols;
    const A scale = p.r[row];
    A lanes[kLanes] = {};
    for (int64_t c = 0; c < whole; c += kLanes) {
      for (int l = 0; l < kLanes; ++l)
        lanes[l] += load(dy[c + l]) * load(w[c + l]) * load(s[c + l]);
    }
    for (int64_t c = whole; c < cols; ++c)
      lanes[c - whole] += load(dy[c]) * load(w[c]) * load(s[c]);
    const A mean = sum_lanes(lanes) * scale / A(cols);
    for (int64_t c = 0; c < cols; ++c) dw[c] += load(dy[c]) * (load(s[c]) * scale);
    if (p.d_sum == nullptr) {
      for (int64_t c = 0; c < cols; ++c) {
        store(rms_norm_input_grad(load(dy[c]), load(w[c]), load(s[c]) * scale, scale, mean), dx[c]);
      }
      continue;
    }
    const T* d_sum = p.d_sum + row * cols;
    for (int64_t c = 0; c < cols; ++c) {
      store(rms_norm_input_grad(load(dy[c]), load(w[c]), load(s[c]) * scale, scale, mean) +
                load(d_sum[c]),
            dx[c]);
    }
  }
}

#define MM_INSTANTIATE(T)                                             \
  template void rms_norm_forward<T>(Shape, const RmsNormForward<T>&); \
  template void rms_norm_backward<T>(Shape, const RmsNormBackward<T>&);
MM_INSTANTIATE(double)
MM_INSTANTIATE(float)
MM_INSTANTIATE(Bf16)

}  // namespace mm::kernels
