#include "tests/kernels/cuda_twins.h"

// cuda_on_cpu.h comes first, so that the kernels compile as C++.
// clang-format off
#include "tests/kernels/cuda_on_cpu.h"
#include "kernels/cuda/adamw.cuh"
#include "kernels/cuda/cross_entropy.cuh"
#include "kernels/cuda/gates.cuh"
#include "kernels/cuda/packed_attention.cuh"
#include "kernels/cuda/rms_norm.cuh"
#include "kernels/cuda/rope.cuh"
// clang-format on

namespace mm::kernels::test {
namespace {

unsigned ceil_div(int64_t a, int64_t b) { return static_cast<unsigned>((a + b - 1) / b); }

// Fewer blocks than elements need, so that the grid-stride loops go round.
dim3 few_blocks(int64_t count) { return {std::min(3U, ceil_div(count, kBlockThreads))}; }

template <typename T>
void rms_norm_backward_played(Shape shape, const RmsNormBackward<T>& p) {
  const unsigned columns = ceil_div(shape.cols, kBlockThreads),
                 blocks = ceil_div(shape.rows, kRmsNormBlockRows);
  std::vector<float> partial(blocks * shape.cols);
  run_grid({ceil_div(shape.rows, kRowsPerBlock)}, kRowsPerBlock * kWarp,
           [&] { rms_norm_input_kernel<T>(shape, p); });
  run_grid({columns, blocks}, kBlockThreads,
           [&] { rms_norm_partial_kernel<T>(shape, p, partial.data()); });
  run_grid({columns}, kBlockThreads,
           [&] { rms_norm_weight_kernel<float>(blocks, shape.cols, partial.data(), p.dw); });
}

template <typename T>
void attention_backward_played(const PackedAttentionShape& s, const PackedAttentionBackward<T>& p) {
  run_grid({ceil_div(s.tokens * s.heads, kAttentionWarps)}, kAttentionWarps * kWarp,
           [&] { packed_attention_query_kernel<T>(s, p); });
  run_grid({ceil_div(s.tokens * s.kv_heads, kAttentionWarps)}, kAttentionWarps * kWarp,
           [&] { packed_attention_key_kernel<T>(s, p); });
}

}  // namespace

template <typename T>
RmsNormTwin<T> played_rms_norm() {
  return {[](Shape shape, const RmsNormForward<T>& p) {
            run_grid({ceil_div(shape.rows, kRowsPerBlock)}, kRowsPerBlock * kWarp,
                     [&] { rms_norm_forward_kernel<T>(shape, p); });
          },
          rms_norm_backward_played<T>};
}

template <typename T>
SwigluTwin<T> played_swiglu() {
  return {[](int64_t count, const T* gate, const T* up, T* y) {
            run_grid(few_blocks(count), kBlockThreads,
                     [&] { swiglu_forward_kernel<T>(count, gate, up, y); });
          },
          [](int64_t count, const SwigluBackward<T>& p) {
            run_grid(few_blocks(count), kBlockThreads,
                     [&] { swiglu_backward_kernel<T>(count, p); });
          }};
}

template <typename T>
QuickGeluTwin<T> played_quick_gelu() {
  return {[](int64_t count, const T* x, T* y) {
            run_grid(few_blocks(count), kBlockThreads,
                     [&] { quick_gelu_forward_kernel<T>(count, x, y); });
          },
          [](int64_t count, const T* dy, const T* x, T* dx) {
            run_grid(few_blocks(count), kBlockThreads,
                     [&] { quick_gelu_backward_kernel<T>(count, dy, x, dx); });
          }};
}

template <typename T>
RopeTwin<T> played_rope() {
  return [](RopeShape shape, const T* x, const float* cos, const float* sin, T* y) {
    run_grid({2}, kBlockThreads, [&] { rope_kernel<T>(shape, x, cos, sin, y); });
  };
}

template <typename T>
CrossEntropyTwin<T> played_cross_entropy() {
  return [](Shape shape, const CrossEntropyRows<T>& p) {
    run_grid({static_cast<unsigned>(shape.rows)}, kBlockThreads,
             [&] { cross_entropy_rows_kernel<T>(shape, p); });
  };
}

template <typename C>
AdamWTwin<float, C> played_adamw() {
  return [](int64_t count, const AdamWArrays<float, C>& p, const AdamWConstants<float>& k) {
    run_grid(few_blocks(count), kBlockThreads, [&] { adamw_kernel<C>(count, p, k); });
  };
}

template <typename T>
PackedAttentionTwin<T> played_packed_attention() {
  return {[](const PackedAttentionShape& s, const PackedAttentionForward<T>& p) {
            run_grid({ceil_div(s.tokens * s.heads, kAttentionWarps)}, kAttentionWarps * kWarp,
                     [&] { packed_attention_forward_kernel<T>(s, p); });
          },
          attention_backward_played<T>};
}

#define MM_INSTANTIATE(T)                              \
  template RmsNormTwin<T> played_rms_norm<T>();        \
  template SwigluTwin<T> played_swiglu<T>();           \
  template QuickGeluTwin<T> played_quick_gelu<T>();    \
  template RopeTwin<T> played_rope<T>();               \
  template CrossEntropyTwin<T> played_cross_entropy(); \
  template AdamWTwin<float, T> played_adamw<T>();      \
  template PackedAttentionTwin<T> played_packed_attention<T>();
MM_INSTANTIATE(float)
MM_INSTANTIATE(Bf16)

}  // namespace mm::kernels::test
