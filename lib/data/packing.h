#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "lib/data/epoch_plan.h"

namespace mm::data {

/// Capacities of one pack.
struct PackLimits {
  int32_t tokens = 0;           ///< at most, > 0
  int32_t images = 0;           ///< at most; 0: no cap
  int64_t attention_pairs = 0;  ///< at most; 0: no cap
};
PackLimits limits_of(const PlanOptions& options);

/// Pairs of positions that attend in a sample alone in its mask: s * (s + 1) / 2.
constexpr int64_t attention_pairs_of(int64_t tokens) { return tokens * (tokens + 1) / 2; }

/// What is left of a pack's capacities. Without a cap its room never ends.
struct PackRoom {
  int64_t tokens = 0, images = 0, pairs = 0;

  static PackRoom of(const PackLimits& limits);
  /// Whether `times` samples of this size fit.
  bool fits(int64_t sample_tokens, int64_t sample_images, int64_t times = 1) const {
    return times * sample_tokens <= tokens && times * sample_images <= images &&
           times * attention_pairs_of(sample_tokens) <= pairs;
  }
  /// Most samples of this size that fit, `limit` at most.
  int64_t times(int64_t sample_tokens, int64_t sample_images, int64_t limit) const;
  void take(int64_t sample_tokens, int64_t sample_images, int64_t times = 1) {
    tokens -= times * sample_tokens;
    images -= times * sample_images;
    pairs -= times * attention_pairs_of(sample_tokens);
  }
};

/// Packs in a flat list: pack p holds rows[begin[p] .. begin[p + 1]).
struct PackList {
  std::vector<uint32_t> rows;
  std::vector<uint64_t> begin{0};

  size_t packs() const { return begin.size() - 1; }
  std::span<const uint32_t> pack(size_t p) const {
    return std::span(rows).subspan(begin[p], begin[p + 1] - begin[p]);
  }
  void add(std::span<const uint32_t> pack) {
    rows.insert(rows.end(), pack.begin(), pack.end());
    begin.push_back(rows.size());
  }
};

/// First fit in the order of `rows` into at most kOpenPacks unfilled packs (the fullest is closed
/// when one more is needed): with shuffled `rows` a pack is a random draw of samples, whatever
/// their lengths, at some padding. Each row stands in exactly one pack. Every size must fit the
/// limits. O(n).
PackList pack_in_order(std::span<const SampleSize> sizes, std::span<const uint32_t> rows,
                       const PackLimits& limits);

/// Packs that pack_in_order fills at a time.
inline constexpr size_t kOpenPacks = 8;

}  // namespace mm::data
