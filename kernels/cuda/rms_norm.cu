#include "kernels/cuda/rms_norm.cuh"

namespace mm::kernels {
namespace {

template <typename T>
int forward(const Shape& shape, const RmsNormForward<T>& p, void* stream) {
  if (shape.rows <= 0) return 0;
  const auto blocks = static_cast<unsigned>((shape.rows + kRowsPerBlock - 1) / kRowsPerBlock);
  rms_norm_forward_kernel<T><<<blocks, kRowsPerBlock * kWarp, 0, static_cast<cudaStream_t>(stream)>>>(shape, p);
  return static_cast<int>(cudaGetLastError());
}

template <typename T>
int backward(const Shape& shape, const RmsNormBackward<T>& p, float* partial, void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  const auto column_blocks = static_cast<unsigned>((shape.cols + kBlockThreads - 1) / kBlockThreads);
  const auto row_blocks = static_cast<unsigned>((shape.rows + kRmsNormBlockRows - 1) / kRmsNormBlockRows);
  if (shape.rows > 0) {
    const auto blocks = static_cast<unsigned>((shape.rows + kRowsPerBlock - 1) / kRowsPerBlock);
    rms_norm_input_kernel<T><<<blocks, kRowsPerBlock * kWarp, 0, queue>>>(shape, p);
    rms_norm_partial_kernel<T><<<dim3(column_blocks, row_blocks), kBlockThreads, 0, queue>>>(shape, p, partial);
  }
  rms_norm_weight_kernel<<<column_blocks, kBlockThreads, 0, queue>>>(row_blocks, shape.cols, partial, p.dw);
  return static_cast<int>(cudaGetLastError());
}

}  // namespace

extern "C" int mm_rms_norm_forward_cuda_f32(const Shape& shape, const RmsNormForward<float>& p, void* stream) {
  return forward(shape, p, stream);
}
extern "C" int mm_rms_norm_forward_cuda_bf16(const Shape& shape, const RmsNormForward<Bf16>& p, void* stream) {
  return forward(shape, p, stream);
}
extern "C" int mm_rms_norm_backward_cuda_f32(const Shape& shape, const RmsNormBackward<float>& p, float* partial,
                                             void* stream) {
  return backward(shape, p, partial, stream);
}
extern "C" int mm_rms_norm_backward_cuda_bf16(const Shape& shape, const RmsNormBackward<Bf16>& p, float* partial,
                                              void* stream) {
  return backward(shape, p, partial, stream);
}

}  // namespace mm::kernels
