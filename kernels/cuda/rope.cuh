#pragma once
// y[i] = x[i] cos - x[i + half] sin, y[i + half] = x[i + half] cos + x[i] sin      x, y: [tokens, heads, 2 half]; cos, sin: [tokens, half] fp32
// One thread a pair in a grid-stride loop: neighbouring threads take neighbouring i, so both halves are read and written in whole lines.
#include "kernels/cuda/warp.cuh"
#include "kernels/rope.h"

namespace mm::kernels {

template <typename T>
__global__ void rope_kernel(RopeShape shape, const T* x, const float* cos, const float* sin, T* y) {
  const int64_t pairs = shape.tokens * shape.heads * shape.half;
  for (int64_t n = first_element(); n < pairs; n += element_stride()) {
    const int64_t i = n % shape.half, head = n / shape.half, token = head / shape.heads;
    const int64_t low = head * 2 * shape.half + i, angle = token * shape.half + i;
    const auto turned = rotate_pair<float>(load(x[low]), load(x[low + shape.half]), cos[angle],
                                           static_cast<float>(shape.direction) * sin[angle]);
    store(turned.low, y[low]);
    store(turned.high, y[low + shape.half]);
  }
}

}  // namespace mm::kernels
