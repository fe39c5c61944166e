// y[i] = bf16(x[i]), round to nearest even.      x: [count] fp32; y: [count] bf16 bits
// Thread t of the grid takes elements t*4 .. t*4+3 with one 16-byte load and one 8-byte store where both pointers are aligned, the tail one by one;
// a grid-stride loop keeps the launch small. Memory-bound: 6 bytes an element.
#include <cuda_runtime.h>

#include "kernels/bf16_bits.h"
#include "kernels/cast_bf16.h"

namespace {

using mm::kernels::bf16_bits;

__global__ void cast_kernel(const float* __restrict__ x, uint16_t* __restrict__ y, int64_t count, bool aligned) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t groups = aligned ? count / 4 : 0;
  for (int64_t g = first; g < groups; g += stride) {
    const float4 v = reinterpret_cast<const float4*>(x)[g];
    ushort4 out;
    out.x = bf16_bits(v.x);
    out.y = bf16_bits(v.y);
    out.z = bf16_bits(v.z);
    out.w = bf16_bits(v.w);
    reinterpret_cast<ushort4*>(y)[g] = out;
  }
  for (int64_t i = groups * 4 + first; i < count; i += stride) y[i] = bf16_bits(x[i]);
}

}  // namespace

extern "C" int mm_cast_bf16_cuda(const float* x, uint16_t* y, int64_t count, void* stream) {
  if (count <= 0) return 0;
  const bool aligned = reinterpret_cast<uintptr_t>(x) % 16 == 0 && reinterpret_cast<uintptr_t>(y) % 8 == 0;
  constexpr int kThreads = 256;
  const int64_t wanted = (count / 4 + kThreads) / kThreads;
  const int blocks = static_cast<int>(wanted < 4096 ? wanted : 4096);
  cast_kernel<<<blocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(x, y, count, aligned);
  return static_cast<int>(cudaGetLastError());
}
