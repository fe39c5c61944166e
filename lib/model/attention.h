#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace mm::model {

// T tokens of several samples in one row, I pictures of P patches; H query heads, G key/value heads
// (H a multiple of G), D head size. Scores are scaled by 1/sqrt(D). Empty inputs give empty
// outputs.

/// Causal attention inside each sample, none across samples (field case C19). q [T, H, D], k and v
/// [T, G, D], cu_seqlens [samples + 1] from 0 to T. Returns [T, H * D]. With `window` > 0 a token
/// sees that many tokens, itself among them. Differentiable.
at::Tensor packed_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const std::vector<int64_t>& cu_seqlens, int64_t window = 0);
/// The same by LibTorch's attention, where the fused op does not take q
/// (lib/model/fused_attention.h). Samples of similar length run together, padded on the right,
/// which a causal mask makes harmless: at most kMaxPaddingShare of a group's rows are padding. T >
/// 0.
at::Tensor grouped_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                             const std::vector<int64_t>& cu_seqlens, int64_t window = 0);
/// The same, one sample at a time: the reference.
at::Tensor packed_attention_reference(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                      const std::vector<int64_t>& cu_seqlens, int64_t window = 0);

inline constexpr double kMaxPaddingShare = 0.15;

/// Samples that run as one batch: their numbers, and the length they are padded to.
struct LengthGroup {
  std::vector<int64_t> samples;
  int64_t padded_length = 0;
};
/// Longest first; a group closes when padding would pass `max_padding_share` of its rows. Empty
/// samples are left out. O(n log n).
std::vector<LengthGroup> group_by_length(std::span<const int64_t> lengths,
                                         double max_padding_share);

/// Full attention inside each picture. q, k, v [I, P, H, D]; returns [I, P, H * D]. Differentiable.
at::Tensor full_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);

}  // namespace mm::model
