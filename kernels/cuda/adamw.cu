#include "kernels/cuda/adamw.cuh"

namespace mm::kernels {
namespace {

template <typename C>
int launch(int64_t count, const AdamWArrays<float, C>& p, const AdamWConstants<float>& constants, void* stream) {
  if (count <= 0) return 0;
  adamw_kernel<C><<<blocks_for(count), kBlockThreads, 0, static_cast<cudaStream_t>(stream)>>>(count, p, constants);
  return static_cast<int>(cudaGetLastError());
}

}  // namespace

extern "C" int mm_adamw_cuda_f32(int64_t count, const AdamWArrays<float, float>& p, const AdamWConstants<float>& constants,
                                 void* stream) {
  return launch(count, p, constants, stream);
}
extern "C" int mm_adamw_cuda_bf16(int64_t count, const AdamWArrays<float, Bf16>& p, const AdamWConstants<float>& constants,
                                  void* stream) {
  return launch(count, p, constants, stream);
}

}  // namespace mm::kernels
