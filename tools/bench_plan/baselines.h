#pragma once
#include <cstdint>
#include <span>

#include "lib/data/epoch_plan.h"
#include "lib/data/packing.h"

namespace mm::bench {

/// Packs that a rule makes, and how many of them pass the image cap, which these rules do not know.
struct BaselineResult {
  uint64_t packs = 0;
  uint64_t over_image_cap = 0;
};

/// In order, one open pack, closed when the next sample does not fit.
BaselineResult next_fit(std::span<const data::SampleSize> sizes, const data::PackLimits& limits);
/// Buffers of `buffer` samples: the longest that fits, again and again.
BaselineResult greedy_knapsack(std::span<const data::SampleSize> sizes,
                               const data::PackLimits& limits, size_t buffer);
/// Longest first, each into the fullest pack that takes it, over the whole set.
BaselineResult best_fit_decreasing(std::span<const data::SampleSize> sizes,
                                   const data::PackLimits& limits);

}  // namespace mm::bench
