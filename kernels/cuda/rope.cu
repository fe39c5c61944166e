#include "kernels/cuda/rope.cuh"

namespace mm::kernels {
namespace {

template <typename T>
int launch(const RopeShape& shape, const T* x, const float* cos, const float* sin, T* y, void* stream) {
  const int64_t pairs = shape.tokens * shape.heads * shape.half;
  if (pairs <= 0) return 0;
  rope_kernel<T><<<blocks_for(pairs), kBlockThreads, 0, static_cast<cudaStream_t>(stream)>>>(shape, x, cos, sin, y);
  return static_cast<int>(cudaGetLastError());
}

}  // namespace

extern "C" int mm_rope_cuda_f32(const RopeShape& shape, const float* x, const float* cos, const float* sin, float* y,
                                void* stream) {
  return launch(shape, x, cos, sin, y, stream);
}
extern "C" int mm_rope_cuda_bf16(const RopeShape& shape, const Bf16* x, const float* cos, const float* sin, Bf16* y,
                                 void* stream) {
  return launch(shape, x, cos, sin, y, stream);
}

}  // namespace mm::kernels
