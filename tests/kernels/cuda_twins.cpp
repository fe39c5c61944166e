#include "tests/kernels/cuda_twins.h"

// cuda_on_cpu.h comes first, so that the kernels compile as C++.
// clang-format off
#include "tests/kernels/cuda_on_cpu.h"
#include "kernels/cuda/ada_norm.cuh"
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

// Columns, and blocks of rows of all pictures.
dim3 partial_grid(const PictureRows& s) {
  return {ceil_div(s.cols, kBlockThreads), static_cast<unsigned>(s.pictures * ada_norm_blocks(s))};
}

void picture_sums_played(const PictureRows& s, const float* partial, float* sums) {
  run_grid({ceil_div(s.cols, kBlockThreads), static_cast<unsigned>(s.pictures)}, kBlockThreads,
           [&] { picture_sum_kernel<float>(s, partial, sums); });
}

template <typename T>
void modulated_norm_backward_played(const PictureRows& s, const ModulatedNormBackward<T>& p) {
  const int64_t each = s.pictures * ada_norm_blocks(s) * s.cols;
  std::vector<float> shifts(each), scales(each);
  run_grid(partial_grid(s), kBlockThreads,
           [&] { modulated_norm_partial_kernel<T>(s, p, shifts.data(), scales.data()); });
  run_grid({ceil_div(s.pictures * s.rows, kAdaNormRowsPerBlock)}, kAdaNormRowsPerBlock * kWarp,
           [&] { modulated_norm_input_kernel<T>(s, p); });
  picture_sums_played(s, shifts.data(), p.dshift);
  picture_sums_played(s, scales.data(), p.dscale);
}

template <typename T>
void gated_add_backward_played(const PictureRows& s, const GatedAddBackward<T>& p) {
  std::vector<float> partial(s.pictures * ada_norm_blocks(s) * s.cols);
  run_grid(partial_grid(s), kBlockThreads,
           [&] { gated_add_partial_kernel<T>(s, p, partial.data()); });
  run_grid(few_blocks(s.pictures * s.rows * s.cols), kBlockThreads,
           [&] { gated_add_branch_kernel<T>(s, p); });
  picture_sums_played(s, partial.data(), p.dgate);
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
ActivationTwin<T> played_quick_gelu() {
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
ActivationTwin<T> played_gelu_tanh() {
  return {[](int64_t count, const T* x, T* y) {
            run_grid(few_blocks(count), kBlockThreads,
                     [&] { gelu_tanh_forward_kernel<T>(count, x, y); });
          },
          [](int64_t count, const T* dy, const T* x, T* dx) {
            run_grid(few_blocks(count), kBlockThreads,
                     [&] { gelu_tanh_backward_kernel<T>(count, dy, x, dx); });
          }};
}

template <typename T>
AdaNormTwin<T> played_ada_norm() {
  return {[](const PictureRows& s, const ModulatedNormForward<T>& p) {
            run_grid({ceil_div(s.pictures * s.rows, kAdaNormRowsPerBlock)},
                     kAdaNormRowsPerBlock * kWarp, [&] { modulated_norm_forward_kernel<T>(s, p); });
          },
          modulated_norm_backward_played<T>,
          [](const PictureRows& s, const GatedAddForward<T>& p) {
            run_grid(few_blocks(s.pictures * s.rows * s.cols), kBlockThreads,
                     [&] { gated_add_forward_kernel<T>(s, p); });
          },
          gated_add_backward_played<T>};
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
  template ActivationTwin<T> played_quick_gelu<T>();   \
  template ActivationTwin<T> played_gelu_tanh<T>();    \
  template AdaNormTwin<T> played_ada_norm<T>();        \
  template RopeTwin<T> played_rope<T>();               \
  template CrossEntropyTwin<T> played_cross_entropy(); \
  template AdamWTwin<float, T> played_adamw<T>();      \
  template PackedAttentionTwin<T> played_packed_attention<T>();
MM_INSTANTIATE(float)
MM_INSTANTIATE(Bf16)

}  // namespace mm::kernels::test
