#include "kernels/cuda/cross_entropy.cuh"

namespace mm::kernels {
namespace {

template <typename T>
int launch(const Shape& shape, const CrossEntropyRows<T>& p, void* stream) {
  if (shape.rows <= 0) return 0;
  const auto blocks = static_cast<unsigned>(shape.rows);
  cross_entropy_rows_kernel<T><<<blocks, kBlockThreads, 0, static_cast<cudaStream_t>(stream)>>>(shape, p);
  return static_cast<int>(cudaGetLastError());
}

}  // namespace

extern "C" int mm_cross_entropy_rows_cuda_f32(const Shape& shape, const CrossEntropyRows<float>& p, void* stream) {
  return launch(shape, p, stream);
}
extern "C" int mm_cross_entropy_rows_cuda_bf16(const Shape& shape, const CrossEntropyRows<Bf16>& p, void* stream) {
  return launch(shape, p, stream);
}

}  // namespace mm::kernels
