#pragma once
// AdamW on flat fp32 buffers, the compute copy written in the same pass (formula in kernels/adamw.h). One thread an element in a
// grid-stride loop. Memory-bound: 28 bytes an element, 30 with a bf16 copy.
#include "kernels/adamw.h"
#include "kernels/cuda/warp.cuh"

namespace mm::kernels {

template <typename C>
__global__ void adamw_kernel(int64_t count, AdamWArrays<float, C> p, AdamWConstants<float> k) {
  for (int64_t i = first_element(); i < count; i += element_stride()) {
    float m = p.exp_avg[i], v = p.exp_avg_sq[i];
    const float value = adamw_element(k, p.grad[i], p.master[i], m, v);
    p.exp_avg[i] = m;
    p.exp_avg_sq[i] = v;
    p.master[i] = value;
    if (p.copy != nullptr) store(value, p.copy[i]);
  }
}

}  // namespace mm::kernels
