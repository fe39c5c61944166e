#pragma once
#include <cstdint>
#include <vector>

#include "lib/base/random.h"
#include "lib/data/epoch_plan.h"

namespace mm::data {

/// Cost of a pack in token equivalents: tokens + attention_pairs / kPairsPerToken. The ratio is
/// that of a decoder whose linear layers cost 12 * hidden^2 * 2 FLOPs a token and attention 4 *
/// hidden a pair: 6 * hidden, here for hidden = 2,048.
double pack_cost(const Pack& pack);
inline constexpr double kPairsPerToken = 12288.0;

/// Deals packs into steps of `packs_per_step` packs (the last step takes what is left) such that
/// the steps of a window of kStepsPerWindow steps cost about the same: longest processing time
/// first with equal counts, ties by index. Then the steps of each window change places at random,
/// so that cost says nothing about time. Deterministic.
std::vector<std::vector<Pack>> balance_steps(std::vector<Pack> packs, int32_t packs_per_step,
                                             const Philox& random);
inline constexpr size_t kStepsPerWindow = 64;

/// Longest processing time first into `bins` bins of at most `capacity` items each: heaviest item
/// to the lightest bin with room; ties go to the lower index. bins * capacity >= costs.size().
/// Returns ascending item indices per bin. O(n log n + n log bins).
std::vector<std::vector<uint32_t>> longest_first(const std::vector<double>& costs, size_t bins,
                                                 size_t capacity);

}  // namespace mm::data
