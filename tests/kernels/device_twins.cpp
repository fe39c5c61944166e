#include "tests/kernels/device_twins.h"

#include "tests/kernels/device_memory.h"

namespace mm::kernels::test {
namespace {

template <typename T>
void rms_norm_backward_on_device(Shape shape, const RmsNormBackward<T>& p) {
  DeviceArrays d;
  const int64_t n = shape.rows * shape.cols,
                blocks = (shape.rows + kRmsNormBlockRows - 1) / kRmsNormBlockRows;
  const RmsNormBackward<T> on{d.in(p.dy, n),          d.in(p.d_sum, n),      d.in(p.s, n),
                              d.in(p.w, shape.cols),  d.in(p.r, shape.rows), d.out(p.dx, n),
                              d.out(p.dw, shape.cols)};
  const auto launch = pick<T>(mm_rms_norm_backward_cuda_f32, mm_rms_norm_backward_cuda_bf16);
  cuda_check(launch(shape, on, d.make<float>(blocks * shape.cols), nullptr));
  d.collect();
}

template <typename T>
void modulated_norm_backward_on_device(const PictureRows& s, const ModulatedNormBackward<T>& p) {
  DeviceArrays d;
  const int64_t rows = s.pictures * s.rows, n = rows * s.cols, own = s.pictures * s.cols;
  const ModulatedNormBackward<T> on{
      d.in(p.dy, n),        d.in(p.x, n),        d.in(p.scale, s.pictures * s.stride),
      d.in(p.mean, rows),   d.in(p.r, rows),     d.out(p.dx, n),
      d.out(p.dshift, own), d.out(p.dscale, own)};
  const auto launch =
      pick<T>(mm_modulated_norm_backward_cuda_f32, mm_modulated_norm_backward_cuda_bf16);
  cuda_check(launch(s, on, d.make<float>(2 * s.pictures * ada_norm_blocks(s) * s.cols), nullptr));
  d.collect();
}

template <typename T>
void gated_add_backward_on_device(const PictureRows& s, const GatedAddBackward<T>& p) {
  DeviceArrays d;
  const int64_t n = s.pictures * s.rows * s.cols;
  const GatedAddBackward<T> on{d.in(p.dy, n), d.in(p.gate, s.pictures * s.stride), d.in(p.f, n),
                               d.out(p.df, n), d.out(p.dgate, s.pictures * s.cols)};
  const auto launch = pick<T>(mm_gated_add_backward_cuda_f32, mm_gated_add_backward_cuda_bf16);
  cuda_check(launch(s, on, d.make<float>(s.pictures * ada_norm_blocks(s) * s.cols), nullptr));
  d.collect();
}

template <typename T>
using ActivationForward = int (*)(int64_t, const T*, T*, void*);
template <typename T>
using ActivationBackward = int (*)(int64_t, const T*, const T*, T*, void*);

template <typename T>
ActivationTwin<T> activation_on_device(ActivationForward<T> forward,
                                       ActivationBackward<T> backward) {
  return {[forward](int64_t n, const T* x, T* y) {
            DeviceArrays d;
            cuda_check(forward(n, d.in(x, n), d.out(y, n), nullptr));
            d.collect();
          },
          [backward](int64_t n, const T* dy, const T* x, T* dx) {
            DeviceArrays d;
            cuda_check(backward(n, d.in(dy, n), d.in(x, n), d.out(dx, n), nullptr));
            d.collect();
          }};
}

template <typename T>
void attention_backward_on_device(const PackedAttentionShape& s,
                                  const PackedAttentionBackward<T>& p) {
  DeviceArrays d;
  const int64_t nq = s.tokens * s.heads * s.head_size, nk = s.tokens * s.kv_heads * s.head_size,
                rows = s.tokens * s.heads;
  const PackedAttentionBackward<T> on{
      d.in(p.q, nq),     d.in(p.k, nk),        d.in(p.v, nk),
      d.in(p.out, nq),   d.in(p.d_out, nq),    d.in(p.cu_seqlens, s.samples + 1),
      d.in(p.lse, rows), d.out(p.delta, rows), d.out(p.dq, nq),
      d.out(p.dk, nk),   d.out(p.dv, nk)};
  cuda_check(pick<T>(mm_packed_attention_backward_cuda_f32, mm_packed_attention_backward_cuda_bf16)(
      s, on, nullptr));
  d.collect();
}

}  // namespace

template <typename T>
RmsNormTwin<T> device_rms_norm() {
  return {[](Shape shape, const RmsNormForward<T>& p) {
            DeviceArrays d;
            const int64_t n = shape.rows * shape.cols;
            const RmsNormForward<T> on{
                d.in(p.x, n),    d.in(p.residual, n), d.in(p.w, shape.cols), p.eps,
                d.out(p.sum, n), d.out(p.y, n),       d.out(p.r, shape.rows)};
            cuda_check(pick<T>(mm_rms_norm_forward_cuda_f32, mm_rms_norm_forward_cuda_bf16)(
                shape, on, nullptr));
            d.collect();
          },
          rms_norm_backward_on_device<T>};
}

template <typename T>
SwigluTwin<T> device_swiglu() {
  return {[](int64_t n, const T* gate, const T* up, T* y) {
            DeviceArrays d;
            cuda_check(pick<T>(mm_swiglu_forward_cuda_f32, mm_swiglu_forward_cuda_bf16)(
                n, d.in(gate, n), d.in(up, n), d.out(y, n), nullptr));
            d.collect();
          },
          [](int64_t n, const SwigluBackward<T>& p) {
            DeviceArrays d;
            const SwigluBackward<T> on{d.in(p.dy, n), d.in(p.gate, n), d.in(p.up, n),
                                       d.out(p.d_gate, n), d.out(p.d_up, n)};
            cuda_check(
                pick<T>(mm_swiglu_backward_cuda_f32, mm_swiglu_backward_cuda_bf16)(n, on, nullptr));
            d.collect();
          }};
}

template <typename T>
ActivationTwin<T> device_quick_gelu() {
  return activation_on_device<T>(
      pick<T>(mm_quick_gelu_forward_cuda_f32, mm_quick_gelu_forward_cuda_bf16),
      pick<T>(mm_quick_gelu_backward_cuda_f32, mm_quick_gelu_backward_cuda_bf16));
}

template <typename T>
ActivationTwin<T> device_gelu_tanh() {
  return activation_on_device<T>(
      pick<T>(mm_gelu_tanh_forward_cuda_f32, mm_gelu_tanh_forward_cuda_bf16),
      pick<T>(mm_gelu_tanh_backward_cuda_f32, mm_gelu_tanh_backward_cuda_bf16));
}

template <typename T>
AdaNormTwin<T> device_ada_norm() {
  return {[](const PictureRows& s, const ModulatedNormForward<T>& p) {
            DeviceArrays d;
            const int64_t rows = s.pictures * s.rows, n = rows * s.cols, m = s.pictures * s.stride;
            const ModulatedNormForward<T> on{d.in(p.x, n),    d.in(p.shift, m), d.in(p.scale, m),
                                             p.eps,           d.out(p.y, n),    d.out(p.mean, rows),
                                             d.out(p.r, rows)};
            cuda_check(pick<T>(mm_modulated_norm_forward_cuda_f32,
                               mm_modulated_norm_forward_cuda_bf16)(s, on, nullptr));
            d.collect();
          },
          modulated_norm_backward_on_device<T>,
          [](const PictureRows& s, const GatedAddForward<T>& p) {
            DeviceArrays d;
            const int64_t n = s.pictures * s.rows * s.cols;
            const GatedAddForward<T> on{d.in(p.x, n), d.in(p.gate, s.pictures * s.stride),
                                        d.in(p.f, n), d.out(p.y, n)};
            cuda_check(pick<T>(mm_gated_add_forward_cuda_f32, mm_gated_add_forward_cuda_bf16)(
                s, on, nullptr));
            d.collect();
          },
          gated_add_backward_on_device<T>};
}

template <typename T>
RopeTwin<T> device_rope() {
  return [](RopeShape s, const T* x, const float* cos, const float* sin, T* y) {
    DeviceArrays d;
    const int64_t n = s.tokens * s.heads * 2 * s.half, angles = s.tokens * s.half;
    cuda_check(pick<T>(mm_rope_cuda_f32, mm_rope_cuda_bf16)(
        s, d.in(x, n), d.in(cos, angles), d.in(sin, angles), d.out(y, n), nullptr));
    d.collect();
  };
}

template <typename T>
CrossEntropyTwin<T> device_cross_entropy() {
  return [](Shape shape, const CrossEntropyRows<T>& p) {
    DeviceArrays d;
    const int64_t n = shape.rows * shape.cols;
    T* logits = d.out(p.d_logits, n);  // in place
    const CrossEntropyRows<T> on{logits, d.in(p.targets, shape.rows), d.in(p.weights, shape.rows),
                                 d.out(p.loss, shape.rows), logits};
    cuda_check(pick<T>(mm_cross_entropy_rows_cuda_f32, mm_cross_entropy_rows_cuda_bf16)(shape, on,
                                                                                        nullptr));
    d.collect();
  };
}

template <typename C>
AdamWTwin<float, C> device_adamw() {
  return [](int64_t n, const AdamWArrays<float, C>& p, const AdamWConstants<float>& k) {
    DeviceArrays d;
    const AdamWArrays<float, C> on{d.in(p.grad, n), d.out(p.master, n), d.out(p.exp_avg, n),
                                   d.out(p.exp_avg_sq, n), d.out(p.copy, n)};
    cuda_check(pick<C>(mm_adamw_cuda_f32, mm_adamw_cuda_bf16)(n, on, k, nullptr));
    d.collect();
  };
}

template <typename T>
PackedAttentionTwin<T> device_packed_attention() {
  return {[](const PackedAttentionShape& s, const PackedAttentionForward<T>& p) {
            DeviceArrays d;
            const int64_t nq = s.tokens * s.heads * s.head_size,
                          nk = s.tokens * s.kv_heads * s.head_size;
            const PackedAttentionForward<T> on{d.in(p.q, nq),    d.in(p.k, nk),
                                               d.in(p.v, nk),    d.in(p.cu_seqlens, s.samples + 1),
                                               d.out(p.out, nq), d.out(p.lse, s.tokens * s.heads)};
            cuda_check(pick<T>(mm_packed_attention_forward_cuda_f32,
                               mm_packed_attention_forward_cuda_bf16)(s, on, nullptr));
            d.collect();
          },
          attention_backward_on_device<T>};
}

double device_ms(int rounds, const std::function<void()>& launch) {
  cudaEvent_t begin = nullptr, end = nullptr;
  cuda_check(cudaEventCreate(&begin));
  cuda_check(cudaEventCreate(&end));
  launch();
  cuda_check(cudaEventRecord(begin));
  for (int i = 0; i < rounds; ++i) launch();
  cuda_check(cudaEventRecord(end));
  cuda_check(cudaEventSynchronize(end));
  float ms = 0;
  cuda_check(cudaEventElapsedTime(&ms, begin, end));
  cuda_check(cudaEventDestroy(begin));
  cuda_check(cudaEventDestroy(end));
  return static_cast<double>(ms) / rounds;
}

#define MM_INSTANTIATE(T)                              \
  template RmsNormTwin<T> device_rms_norm<T>();        \
  template SwigluTwin<T> device_swiglu<T>();           \
  template ActivationTwin<T> device_quick_gelu<T>();   \
  template ActivationTwin<T> device_gelu_tanh<T>();    \
  template AdaNormTwin<T> device_ada_norm<T>();        \
  template RopeTwin<T> device_rope<T>();               \
  template CrossEntropyTwin<T> device_cross_entropy(); \
  template AdamWTwin<float, T> device_adamw<T>();      \
  template PackedAttentionTwin<T> device_packed_attention<T>();
MM_INSTANTIATE(float)
MM_INSTANTIATE(Bf16)

}  // namespace mm::kernels::test
