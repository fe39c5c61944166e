#pragma once
// s = x + residual; y = w s r, r = 1 / sqrt(mean(s^2) + eps)      x, residual, s, y: [rows, cols]; w: [cols]; r: [rows] fp32
// One warp a row, 4 rows a block; neighbouring lanes read neighbouring elements. The row is read twice in each direction, the second
// time from cache. dw: a thread a column sums kRmsNormBlockRows rows, then a second launch sums the blocks in order, so reruns are bit-equal.
#include "kernels/cuda/warp.cuh"
#include "kernels/rms_norm.h"

namespace mm::kernels {

constexpr int kRowsPerBlock = 4;

template <typename T>
__global__ void rms_norm_forward_kernel(Shape shape, RmsNormForward<T> p) {
  const int lane = threadIdx.x % kWarp;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kRowsPerBlock + threadIdx.x / kWarp;
  if (row >= shape.rows) return;  // a whole warp leaves
  const int64_t at = row * shape.cols;
  float squares = 0;
  for (int64_t c = lane; c < shape.cols; c += kWarp) {
    float s = load(p.x[at + c]);
    if (p.residual != nullptr) {
      store(s + load(p.residual[at + c]), p.sum[at + c]);
      s = load(p.sum[at + c]);
    }
    squares += s * s;
  }
  const float scale = rms_norm_scale(warp_sum(squares), shape.cols, p.eps);
  if (lane == 0) p.r[row] = scale;
  const T* normed = p.residual != nullptr ? p.sum : p.x;
  for (int64_t c = lane; c < shape.cols; c += kWarp)
    store(rms_norm_output(load(normed[at + c]), scale, load(p.w[c])), p.y[at + c]);
}

template <typename T>
__global__ void rms_norm_input_kernel(Shape shape, RmsNormBackward<T> p) {
  const int lane = threadIdx.x % kWarp;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kRowsPerBlock + threadIdx.x / kWarp;
  if (row >= shape.rows) return;
  const int64_t at = row * shape.cols;
  float dot = 0;
  for (int64_t c = lane; c < shape.cols; c += kWarp)
    dot += load(p.dy[at + c]) * load(p.w[c]) * load(p.s[at + c]);
  const float scale = p.r[row], mean = warp_sum(dot) * scale / static_cast<float>(shape.cols);
  for (int64_t c = lane; c < shape.cols; c += kWarp) {
    float dx = rms_norm_input_grad(load(p.dy[at + c]), load(p.w[c]), load(p.s[at + c]) * scale, scale, mean);
    if (p.d_sum != nullptr) dx += load(p.d_sum[at + c]);
    store(dx, p.dx[at + c]);
  }
}

template <typename T>
__global__ void rms_norm_partial_kernel(Shape shape, RmsNormBackward<T> p, float* partial) {
  const int64_t c = first_element();
  if (c >= shape.cols) return;
  const int64_t begin = static_cast<int64_t>(blockIdx.y) * kRmsNormBlockRows;
  const int64_t end = begin + kRmsNormBlockRows < shape.rows ? begin + kRmsNormBlockRows : shape.rows;
  float sum = 0;
  for (int64_t row = begin; row < end; ++row)
    sum += load(p.dy[row * shape.cols + c]) * (load(p.s[row * shape.cols + c]) * p.r[row]);
  partial[static_cast<int64_t>(blockIdx.y) * shape.cols + c] = sum;
}

template <typename A>
__global__ void rms_norm_weight_kernel(int64_t blocks, int64_t cols, const A* partial, A* dw) {
  const int64_t c = first_element();
  if (c >= cols) return;
  A sum = 0;
  for (int64_t block = 0; block < blocks; ++block) sum += partial[block * cols + c];
  dw[c] = sum;
}

}  // namespace mm::kernels
