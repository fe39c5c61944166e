#pragma once
// What the twins share: sums over a warp, and the launch of one thread an element. No torch header, no CUDA header: nvcc
// brings its own, and the tests compile these files as C++ with a block's threads played on the CPU.
#include "kernels/element.h"

namespace mm::kernels {

constexpr int kWarp = 32;
constexpr int kBlockThreads = 256;

/// The sum over the 32 threads of a warp, in all of them. All threads of the warp call it.
__device__ inline float warp_sum(float value) {
  for (int step = kWarp / 2; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

/// First element of this thread and the distance to its next: a grid-stride loop.
__device__ inline int64_t first_element() { return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline int64_t element_stride() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

/// Blocks for a grid-stride loop over `count` elements.
inline int blocks_for(int64_t count) {
  const int64_t wanted = (count + kBlockThreads - 1) / kBlockThreads;
  return static_cast<int>(wanted < 4096 ? wanted : 4096);
}

}  // namespace mm::kernels
