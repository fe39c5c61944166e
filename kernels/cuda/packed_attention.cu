#include "kernels/cuda/packed_attention.cuh"

namespace mm::kernels {
namespace {

unsigned blocks_of(int64_t warps) { return static_cast<unsigned>((warps + kAttentionWarps - 1) / kAttentionWarps); }

constexpr int kThreads = kAttentionWarps * kWarp;

bool fits(const PackedAttentionShape& s) { return s.head_size <= kMaxPerLane * kWarp; }

template <typename T>
int forward(const PackedAttentionShape& s, const PackedAttentionForward<T>& p, void* stream) {
  if (!fits(s)) return static_cast<int>(cudaErrorInvalidValue);
  if (s.tokens <= 0) return 0;
  packed_attention_forward_kernel<T>
      <<<blocks_of(s.tokens * s.heads), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(s, p);
  return static_cast<int>(cudaGetLastError());
}

template <typename T>
int backward(const PackedAttentionShape& s, const PackedAttentionBackward<T>& p, void* stream) {
  if (!fits(s)) return static_cast<int>(cudaErrorInvalidValue);
  if (s.tokens <= 0) return 0;
  const auto queue = static_cast<cudaStream_t>(stream);
  packed_attention_query_kernel<T><<<blocks_of(s.tokens * s.heads), kThreads, 0, queue>>>(s, p);
  packed_attention_key_kernel<T><<<blocks_of(s.tokens * s.kv_heads), kThreads, 0, queue>>>(s, p);
  return static_cast<int>(cudaGetLastError());
}

}  // namespace

extern "C" int mm_packed_attention_forward_cuda_f32(const PackedAttentionShape& s, const PackedAttentionForward<float>& p,
                                                    void* stream) {
  return forward(s, p, stream);
}
extern "C" int mm_packed_attention_forward_cuda_bf16(const PackedAttentionShape& s, const PackedAttentionForward<Bf16>& p,
                                                     void* stream) {
  return forward(s, p, stream);
}
extern "C" int mm_packed_attention_backward_cuda_f32(const PackedAttentionShape& s, const PackedAttentionBackward<float>& p,
                                                     void* stream) {
  return backward(s, p, stream);
}
extern "C" int mm_packed_attention_backward_cuda_bf16(const PackedAttentionShape& s, const PackedAttentionBackward<Bf16>& p,
                                                      void* stream) {
  return backward(s, p, stream);
}

}  // namespace mm::kernels
