#pragma once
#include "kernels/element.h"

namespace mm::kernels {

// Attention inside each sample of a packed row, none across samples. T tokens, H query heads, G
// key/value heads (H a multiple of G; head h reads kv head h / (H / G)), D head size. For token i
// of a sample [b, e) and the keys j in [first_key(i), end_key(i)):
//   z_ij = scale q_i k_j,   p_ij = exp(z_ij - lse_i),   o_i = sum_j p_ij v_j,   lse_i = log sum exp
//   delta_i = do_i o_i,  dz_ij = p_ij (do_i v_j - delta_i)
//   dq_i = scale sum_j dz_ij k_j,  dk_j = scale sum_i dz_ij q_i,  dv_j = sum_i p_ij do_i
// (Dao et al., "FlashAttention", 2022: one pass with a running maximum, scores are never stored.)
// Compute-bound: 4 D FLOPs a pair and head forward, 10 D backward. Beside LibTorch's flash kernel
// for CPUs: tools/bench_attention.

struct PackedAttentionShape {
  int64_t tokens = 0, heads = 0, kv_heads = 0, head_size = 0, samples = 0;
  int64_t window = 0;  ///< > 0: a token sees that many tokens, itself among them
  bool causal = true;
  double scale = 1;
};

MM_HOST_DEVICE inline int64_t first_key(const PackedAttentionShape& s, int64_t i, int64_t begin) {
  return s.window > 0 && i + 1 - s.window > begin ? i + 1 - s.window : begin;
}
MM_HOST_DEVICE inline int64_t end_key(const PackedAttentionShape& s, int64_t i, int64_t end) {
  return s.causal ? i + 1 : end;
}
/// The queries that see key j are [first_query, end_query).
MM_HOST_DEVICE inline int64_t first_query(const PackedAttentionShape& s, int64_t j, int64_t begin) {
  return s.causal ? j : begin;
}
MM_HOST_DEVICE inline int64_t end_query(const PackedAttentionShape& s, int64_t j, int64_t end) {
  return s.window > 0 && j + s.window < end ? j + s.window : end;
}
/// The sample of token i: the last s with cu_seqlens[s] <= i, so empty samples are passed over.
MM_HOST_DEVICE inline int64_t sample_of(const int64_t* cu_seqlens, int64_t samples, int64_t i) {
  int64_t low = 0, high = samples;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (cu_seqlens[middle] <= i ? low : high) = middle;
  }
  return low;
}

/// A row's softmax while its scores arrive one by one.
template <typename A>
struct RunningSoftmax {
  A highest = A(-1e30), total = A(0);
  /// Takes a score in; what was summed so far must be multiplied by the result's `rescale`, the new
  /// term weighs `weight`.
  struct Taken {
    A rescale, weight;
  };
  MM_HOST_DEVICE Taken take(A score) {
    const A next = score > highest ? score : highest;
    const Taken taken{exponential(highest - next), exponential(score - next)};
    total = total * taken.rescale + taken.weight;
    highest = next;
    return taken;
  }
  MM_HOST_DEVICE A log_sum() const { return highest + std::log(total); }
};

/// q, out [T, H, D]; k, v [T, G, D]; cu_seqlens [samples + 1] from 0 to T; lse [T, H].
template <typename T>
struct PackedAttentionForward {
  const T *q, *k, *v;
  const int64_t* cu_seqlens;
  T* out;
  Acc<T>* lse;
};
void packed_attention_forward_reference(const PackedAttentionShape& shape,
                                        const PackedAttentionForward<double>& p);

/// delta [T, H] is scratch.
template <typename T>
struct PackedAttentionBackward {
  const T *q, *k, *v, *out, *d_out;
  const int64_t* cu_seqlens;
  const Acc<T>* lse;
  Acc<T>* delta;
  T *dq, *dk, *dv;
};
void packed_attention_backward_reference(const PackedAttentionShape& shape,
                                         const PackedAttentionBackward<double>& p);

/// Parts of the work that stand alone: piece n is key head n / samples, with the query heads on it,
/// in sample n % samples. Neither how pieces are shared out among threads nor what else lies in the
/// row changes what a sample gets, to the bit.
struct Pieces {
  int64_t begin, end;
};
inline int64_t piece_count(const PackedAttentionShape& s) { return s.kv_heads * s.samples; }

// CPU twins.
template <typename T>
void packed_attention_forward(const PackedAttentionShape&, const PackedAttentionForward<T>&,
                              Pieces);
template <typename T>
void packed_attention_backward(const PackedAttentionShape&, const PackedAttentionBackward<T>&,
                               Pieces);

// CUDA twins, head_size <= 256; conventions as in rms_norm.h. cu_seqlens lies on the device.
extern "C" int mm_packed_attention_forward_cuda_f32(const PackedAttentionShape&,
                                                    const PackedAttentionForward<float>&,
                                                    void* stream);
extern "C" int mm_packed_attention_forward_cuda_bf16(const PackedAttentionShape&,
                                                     const PackedAttentionForward<Bf16>&,
                                                     void* stream);
extern "C" int mm_packed_attention_backward_cuda_f32(const PackedAttentionShape&,
                                                     const PackedAttentionBackward<float>&,
                                                     void* stream);
extern "C" int mm_packed_attention_backward_cuda_bf16(const PackedAttentionShape&,
                                                      const PackedAttentionBackward<Bf16>&,
                                                      void* stream);

}  // namespace mm::kernels
