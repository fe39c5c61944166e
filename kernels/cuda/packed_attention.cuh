#pragma once
// Attention inside each sample of a packed row (formula in kernels/packed_attention.h). q, out: [T, H, D]; k, v: [T, G, D]; D <= 256
// Forward and dq: one warp a (query, head), which walks its keys with a running softmax; lane l holds elements l, l + 32, ... of the head.
// dk, dv: one warp a (key, kv head), which walks the queries that see it, of all heads of its group. No atomics, so reruns are bit-equal;
// only pairs that see each other are visited. Plain fp32 arithmetic, no tensor cores: this is the twin that is easy to trust.
#include "kernels/cuda/warp.cuh"
#include "kernels/packed_attention.h"

namespace mm::kernels {

constexpr int kMaxPerLane = 8;
constexpr int kAttentionWarps = 4;

/// A head's row, spread over a warp.
struct LaneRow {
  float part[kMaxPerLane];
};

template <typename T>
__device__ inline LaneRow lane_row(const T* row, int64_t head_size, int lane) {
  LaneRow r;
  for (int n = 0; n < kMaxPerLane; ++n) {
    const int64_t d = lane + static_cast<int64_t>(n) * kWarp;
    r.part[n] = d < head_size ? load(row[d]) : 0.0f;
  }
  return r;
}
__device__ inline float dot(const LaneRow& a, const LaneRow& b) {
  float sum = 0;
  for (int n = 0; n < kMaxPerLane; ++n) sum += a.part[n] * b.part[n];
  return warp_sum(sum);
}
__device__ inline void add_scaled(float factor, const LaneRow& from, LaneRow& to) {
  for (int n = 0; n < kMaxPerLane; ++n) to.part[n] += factor * from.part[n];
}
template <typename T>
__device__ inline void write_row(const LaneRow& r, float factor, T* row, int64_t head_size, int lane) {
  for (int n = 0; n < kMaxPerLane; ++n) {
    const int64_t d = lane + static_cast<int64_t>(n) * kWarp;
    if (d < head_size) store(r.part[n] * factor, row[d]);
  }
}
/// The (row, head) pair of this warp, counted over the grid.
__device__ inline int64_t warp_number() {
  return static_cast<int64_t>(blockIdx.x) * kAttentionWarps + threadIdx.x / kWarp;
}

template <typename T>
__global__ void packed_attention_forward_kernel(PackedAttentionShape s, PackedAttentionForward<T> p) {
  const int lane = threadIdx.x % kWarp;
  const int64_t row = warp_number();
  if (row >= s.tokens * s.heads) return;
  const int64_t i = row / s.heads, kv = row % s.heads / (s.heads / s.kv_heads), D = s.head_size;
  const int64_t sample = sample_of(p.cu_seqlens, s.samples, i);
  const int64_t begin = first_key(s, i, p.cu_seqlens[sample]), end = end_key(s, i, p.cu_seqlens[sample + 1]);
  const LaneRow q = lane_row(p.q + row * D, D, lane);
  LaneRow sum{};
  RunningSoftmax<float> softmax;
  for (int64_t j = begin; j < end; ++j) {
    const int64_t at = (j * s.kv_heads + kv) * D;
    const auto taken = softmax.take(static_cast<float>(s.scale) * dot(q, lane_row(p.k + at, D, lane)));
    for (int n = 0; n < kMaxPerLane; ++n) sum.part[n] *= taken.rescale;
    add_scaled(taken.weight, lane_row(p.v + at, D, lane), sum);
  }
  write_row(sum, 1.0f / softmax.total, p.out + row * D, D, lane);
  if (lane == 0) p.lse[row] = softmax.log_sum();
}

template <typename T>
__global__ void packed_attention_query_kernel(PackedAttentionShape s, PackedAttentionBackward<T> p) {
  const int lane = threadIdx.x % kWarp;
  const int64_t row = warp_number();
  if (row >= s.tokens * s.heads) return;
  const int64_t i = row / s.heads, kv = row % s.heads / (s.heads / s.kv_heads), D = s.head_size;
  const int64_t sample = sample_of(p.cu_seqlens, s.samples, i);
  const int64_t begin = first_key(s, i, p.cu_seqlens[sample]), end = end_key(s, i, p.cu_seqlens[sample + 1]);
  const LaneRow q = lane_row(p.q + row * D, D, lane), d_out = lane_row(p.d_out + row * D, D, lane);
  const float delta = dot(d_out, lane_row(p.out + row * D, D, lane)), scale = static_cast<float>(s.scale);
  if (lane == 0) p.delta[row] = delta;
  LaneRow dq{};
  for (int64_t j = begin; j < end; ++j) {
    const int64_t at = (j * s.kv_heads + kv) * D;
    const LaneRow k = lane_row(p.k + at, D, lane);
    const float weight = exponential(scale * dot(q, k) - p.lse[row]);
    add_scaled(weight * (dot(d_out, lane_row(p.v + at, D, lane)) - delta), k, dq);
  }
  write_row(dq, scale, p.dq + row * D, D, lane);
}

/// After packed_attention_query_kernel, which writes delta.
template <typename T>
__global__ void packed_attention_key_kernel(PackedAttentionShape s, PackedAttentionBackward<T> p) {
  const int lane = threadIdx.x % kWarp;
  const int64_t row = warp_number();
  if (row >= s.tokens * s.kv_heads) return;
  const int64_t j = row / s.kv_heads, kv = row % s.kv_heads, group = s.heads / s.kv_heads, D = s.head_size;
  const int64_t sample = sample_of(p.cu_seqlens, s.samples, j);
  const int64_t begin = first_query(s, j, p.cu_seqlens[sample]), end = end_query(s, j, p.cu_seqlens[sample + 1]);
  const LaneRow k = lane_row(p.k + row * D, D, lane), v = lane_row(p.v + row * D, D, lane);
  const float scale = static_cast<float>(s.scale);
  LaneRow dk{}, dv{};
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t head = kv * group; head < (kv + 1) * group; ++head) {
      const int64_t query = i * s.heads + head;
      const LaneRow q = lane_row(p.q + query * D, D, lane), d_out = lane_row(p.d_out + query * D, D, lane);
      const float weight = exponential(scale * dot(q, k) - p.lse[query]);
      add_scaled(weight, d_out, dv);
      add_scaled(weight * (dot(d_out, v) - p.delta[query]), q, dk);
    }
  }
  write_row(dk, scale, p.dk + row * D, D, lane);
  write_row(dv, 1.0f, p.dv + row * D, D, lane);
}

}  // namespace mm::kernels
