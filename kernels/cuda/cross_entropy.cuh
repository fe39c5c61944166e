#pragma once
// loss = log sum exp(z) - z[target]; dz = a (exp(z - max) / sum - [c == target])      z, dz: [rows, cols]
// One block a row. Each thread keeps a running maximum and sum over its columns (one read of the row), the block merges them in shared
// memory as a tree, and a second pass, mostly from L2, writes the gradient.
#include "kernels/cross_entropy.h"
#include "kernels/cuda/warp.cuh"

namespace mm::kernels {

template <typename T>
__global__ void cross_entropy_rows_kernel(Shape shape, CrossEntropyRows<T> p) {
  __shared__ RunningOdds<float> parts[kBlockThreads];
  const int64_t row = blockIdx.x;
  const int thread = static_cast<int>(threadIdx.x);
  const T* z = p.logits + row * shape.cols;
  RunningOdds<float> mine{0, 0};
  for (int64_t c = thread; c < shape.cols; c += kBlockThreads) mine = merge(mine, RunningOdds<float>{load(z[c]), 1});
  parts[thread] = mine;
  __syncthreads();
  for (int step = kBlockThreads / 2; step > 0; step /= 2) {
    if (thread < step) parts[thread] = merge(parts[thread], parts[thread + step]);
    __syncthreads();
  }
  const RunningOdds<float> all = parts[0];
  const int64_t target = p.targets[row];
  const float target_logit = load(z[target]);
  const float weight = p.weights == nullptr ? 1.0f : p.weights[row];
  if (thread == 0) p.loss[row] = std::log(all.total) + all.highest - target_logit;
  // d_logits may be logits: everybody has read the target's before it is overwritten.
  __syncthreads();
  if (p.d_logits == nullptr) return;
  const float share = weight / all.total;
  for (int64_t c = thread; c < shape.cols; c += kBlockThreads) {
    const float odds = odds_of(load(z[c]), all.highest) * share;
    store(c == target ? odds - weight : odds, p.d_logits[row * shape.cols + c]);
  }
}

}  // namespace mm::kernels
