#pragma once
#include "kernels/element.h"

namespace mm::kernels {

// Rotary positions (Su et al., "RoFormer", 2021) as Llama has them, halves rotated:
//   y[i] = x[i] cos - x[i + D/2] sin,   y[i + D/2] = x[i + D/2] cos + x[i] sin
// with cos and sin [tokens, D/2] of each token's own angles, so any rule that gives a token its
// angles fits: one position, or one of several positions per section of the head (M-RoPE).
// The gradient is the rotation back. Memory-bound: reads and writes each element once. CPU twins
// give the same bits whatever the split; all twins agree to 2 ulp of the larger half.

template <typename A>
struct RotatedPair {
  A low, high;
};
template <typename A>
MM_HOST_DEVICE inline RotatedPair<A> rotate_pair(A low, A high, A cos, A sin) {
  return {low * cos - high * sin, high * cos + low * sin};
}

/// x, y [tokens, heads, 2 * half]. `direction` -1 rotates back.
struct RopeShape {
  int64_t tokens = 0, heads = 0, half = 0;
  int direction = 1;
};
/// `y` may be `x`.
template <typename T>
void rope(RopeShape shape, const T* x, const Acc<T>* cos, const Acc<T>* sin, T* y);
void rope_reference(RopeShape shape, const double* x, const double* cos, const double* sin,
                    double* y);

// CUDA twins; conventions as in rms_norm.h.
extern "C" int mm_rope_cuda_f32(const RopeShape&, const float* x, const float* cos,
                                const float* sin, float* y, void* stream);
extern "C" int mm_rope_cuda_bf16(const RopeShape&, const Bf16* x, const float* cos,
                                 const float* sin, Bf16* y, void* stream);

}  // namespace mm::kernels
