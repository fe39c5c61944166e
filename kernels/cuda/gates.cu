#include "kernels/cuda/gates.cuh"

namespace mm::kernels {
namespace {

// Launches `kernel` for `count` elements.
template <typename... Args>
int launch(void (*kernel)(int64_t, Args...), void* stream, int64_t count, Args... args) {
  if (count <= 0) return 0;
  kernel<<<blocks_for(count), kBlockThreads, 0, static_cast<cudaStream_t>(stream)>>>(count, args...);
  return static_cast<int>(cudaGetLastError());
}

}  // namespace

extern "C" int mm_swiglu_forward_cuda_f32(int64_t count, const float* gate, const float* up, float* y, void* stream) {
  return launch(swiglu_forward_kernel<float>, stream, count, gate, up, y);
}
extern "C" int mm_swiglu_forward_cuda_bf16(int64_t count, const Bf16* gate, const Bf16* up, Bf16* y, void* stream) {
  return launch(swiglu_forward_kernel<Bf16>, stream, count, gate, up, y);
}
extern "C" int mm_swiglu_backward_cuda_f32(int64_t count, const SwigluBackward<float>& p, void* stream) {
  return launch(swiglu_backward_kernel<float>, stream, count, p);
}
extern "C" int mm_swiglu_backward_cuda_bf16(int64_t count, const SwigluBackward<Bf16>& p, void* stream) {
  return launch(swiglu_backward_kernel<Bf16>, stream, count, p);
}
extern "C" int mm_quick_gelu_forward_cuda_f32(int64_t count, const float* x, float* y, void* stream) {
  return launch(quick_gelu_forward_kernel<float>, stream, count, x, y);
}
extern "C" int mm_quick_gelu_forward_cuda_bf16(int64_t count, const Bf16* x, Bf16* y, void* stream) {
  return launch(quick_gelu_forward_kernel<Bf16>, stream, count, x, y);
}
extern "C" int mm_quick_gelu_backward_cuda_f32(int64_t count, const float* dy, const float* x, float* dx, void* stream) {
  return launch(quick_gelu_backward_kernel<float>, stream, count, dy, x, dx);
}
extern "C" int mm_quick_gelu_backward_cuda_bf16(int64_t count, const Bf16* dy, const Bf16* x, Bf16* dx, void* stream) {
  return launch(quick_gelu_backward_kernel<Bf16>, stream, count, dy, x, dx);
}
extern "C" int mm_gelu_tanh_forward_cuda_f32(int64_t count, const float* x, float* y, void* stream) {
  return launch(gelu_tanh_forward_kernel<float>, stream, count, x, y);
}
extern "C" int mm_gelu_tanh_forward_cuda_bf16(int64_t count, const Bf16* x, Bf16* y, void* stream) {
  return launch(gelu_tanh_forward_kernel<Bf16>, stream, count, x, y);
}
extern "C" int mm_gelu_tanh_backward_cuda_f32(int64_t count, const float* dy, const float* x, float* dx, void* stream) {
  return launch(gelu_tanh_backward_kernel<float>, stream, count, dy, x, dx);
}
extern "C" int mm_gelu_tanh_backward_cuda_bf16(int64_t count, const Bf16* dy, const Bf16* x, Bf16* dx, void* stream) {
  return launch(gelu_tanh_backward_kernel<Bf16>, stream, count, dy, x, dx);
}

}  // namespace mm::kernels
