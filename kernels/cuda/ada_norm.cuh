#pragma once
// y = xhat (1 + scale) + shift, xhat = (x - mean) r, r = 1 / sqrt(var + eps); and y = x + gate f. x, f, y: [pictures, rows, cols];
// shift, scale, gate: a row a picture. Norm: one warp a row, 4 rows a block; neighbouring lanes read neighbouring elements, the row is
// read again from cache. Sums over a picture's rows: a thread a column sums kAdaNormBlockRows rows, a second launch sums the blocks in
// order, so reruns are bit-equal. The gated sum: one thread an element. All memory-bound.
#include "kernels/ada_norm.h"
#include "kernels/cuda/warp.cuh"

namespace mm::kernels {

constexpr int kAdaNormRowsPerBlock = 4;

template <typename T>
__global__ void modulated_norm_forward_kernel(PictureRows s, ModulatedNormForward<T> p) {
  const int lane = threadIdx.x % kWarp;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kAdaNormRowsPerBlock + threadIdx.x / kWarp;
  if (row >= s.pictures * s.rows) return;  // a whole warp leaves
  const int64_t at = row * s.cols, of_picture = row / s.rows * s.stride;
  float sum = 0, squares = 0;
  for (int64_t c = lane; c < s.cols; c += kWarp) sum += load(p.x[at + c]);
  const float mean = warp_sum(sum) / static_cast<float>(s.cols);
  for (int64_t c = lane; c < s.cols; c += kWarp) {
    const float distance = load(p.x[at + c]) - mean;
    squares += distance * distance;
  }
  const float r = 1.0f / std::sqrt(warp_sum(squares) / static_cast<float>(s.cols) + static_cast<float>(p.eps));
  if (lane == 0) {
    p.mean[row] = mean;
    p.r[row] = r;
  }
  for (int64_t c = lane; c < s.cols; c += kWarp)
    store(modulated(load(p.x[at + c]), mean, r, load(p.shift[of_picture + c]), load(p.scale[of_picture + c])), p.y[at + c]);
}

template <typename T>
__global__ void modulated_norm_input_kernel(PictureRows s, ModulatedNormBackward<T> p) {
  const int lane = threadIdx.x % kWarp;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kAdaNormRowsPerBlock + threadIdx.x / kWarp;
  if (row >= s.pictures * s.rows) return;
  const int64_t at = row * s.cols;
  const T* scale = p.scale + row / s.rows * s.stride;
  const float mean = p.mean[row], r = p.r[row];
  float sum = 0, dot = 0;
  for (int64_t c = lane; c < s.cols; c += kWarp) {
    const float g = load(p.dy[at + c]) * (1.0f + load(scale[c]));
    sum += g;
    dot += g * ((load(p.x[at + c]) - mean) * r);
  }
  const float mean_g = warp_sum(sum) / static_cast<float>(s.cols), mean_gx = warp_sum(dot) / static_cast<float>(s.cols);
  for (int64_t c = lane; c < s.cols; c += kWarp) {
    const float g = load(p.dy[at + c]) * (1.0f + load(scale[c]));
    store(modulated_input_grad(g, (load(p.x[at + c]) - mean) * r, r, mean_g, mean_gx), p.dx[at + c]);
  }
}

// blockIdx.y: the block of rows, counted over all pictures. `partial` [pictures, blocks, cols] of each sum.
template <typename T>
__global__ void modulated_norm_partial_kernel(PictureRows s, ModulatedNormBackward<T> p, float* shifts, float* scales) {
  const int64_t c = first_element();
  if (c >= s.cols) return;
  const int64_t blocks = ada_norm_blocks(s), picture = blockIdx.y / blocks, begin = blockIdx.y % blocks * kAdaNormBlockRows;
  const int64_t end = begin + kAdaNormBlockRows < s.rows ? begin + kAdaNormBlockRows : s.rows;
  float shift = 0, scale = 0;
  for (int64_t row = picture * s.rows + begin; row < picture * s.rows + end; ++row) {
    const float dy = load(p.dy[row * s.cols + c]);
    shift += dy;
    scale += dy * ((load(p.x[row * s.cols + c]) - p.mean[row]) * p.r[row]);
  }
  shifts[blockIdx.y * s.cols + c] = shift;
  scales[blockIdx.y * s.cols + c] = scale;
}

/// out[picture, c] = the sum of the picture's blocks.
template <typename A>
__global__ void picture_sum_kernel(PictureRows s, const A* partial, A* out) {
  const int64_t c = first_element();
  if (c >= s.cols) return;
  const int64_t blocks = ada_norm_blocks(s);
  A sum = 0;
  for (int64_t block = blockIdx.y * blocks; block < (blockIdx.y + 1) * blocks; ++block) sum += partial[block * s.cols + c];
  out[blockIdx.y * s.cols + c] = sum;
}

template <typename T>
__global__ void gated_add_forward_kernel(PictureRows s, GatedAddForward<T> p) {
  const int64_t count = s.pictures * s.rows * s.cols, of_picture = s.rows * s.cols;
  for (int64_t i = first_element(); i < count; i += element_stride()) {
    const float gate = load(p.gate[i / of_picture * s.stride + i % s.cols]);
    store(load(p.x[i]) + gate * load(p.f[i]), p.y[i]);
  }
}

// Before the gradient of f is written, which may take dy's place.
template <typename T>
__global__ void gated_add_partial_kernel(PictureRows s, GatedAddBackward<T> p, float* partial) {
  const int64_t c = first_element();
  if (c >= s.cols) return;
  const int64_t blocks = ada_norm_blocks(s), picture = blockIdx.y / blocks, begin = blockIdx.y % blocks * kAdaNormBlockRows;
  const int64_t end = begin + kAdaNormBlockRows < s.rows ? begin + kAdaNormBlockRows : s.rows;
  float sum = 0;
  for (int64_t row = picture * s.rows + begin; row < picture * s.rows + end; ++row)
    sum += load(p.dy[row * s.cols + c]) * load(p.f[row * s.cols + c]);
  partial[blockIdx.y * s.cols + c] = sum;
}

template <typename T>
__global__ void gated_add_branch_kernel(PictureRows s, GatedAddBackward<T> p) {
  const int64_t count = s.pictures * s.rows * s.cols, of_picture = s.rows * s.cols;
  for (int64_t i = first_element(); i < count; i += element_stride())
    store(load(p.gate[i / of_picture * s.stride + i % s.cols]) * load(p.dy[i]), p.df[i]);
}

}  // namespace mm::kernels
