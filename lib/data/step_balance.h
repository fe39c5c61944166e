#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "lib/base/random.h"
#include "lib/data/epoch_plan.h"
#include "lib/data/packing.h"

namespace mm::data {

/// Cost of a pack in token equivalents: tokens + attention_pairs / kPairsPerToken + image_cost *
/// images; of a batch of a bucket its pixels, fillers included. The ratio is that of a decoder
/// whose linear layers cost 12 * hidden^2 * 2 FLOPs a token and attention 4 * hidden a pair: 6 *
/// hidden, here for hidden = 2,048. A frozen CLIP-L/336 before a decoder of 7B is an image_cost of
/// about 9, a trained one 28.
double pack_cost(const Pack& pack, double image_cost = 0);
inline constexpr double kPairsPerToken = 12288.0;

/// What a step is made of: pack `packs[i]` for i in [begin[s], begin[s + 1]). Only the last step
/// may be short.
struct StepOrder {
  std::vector<uint32_t> packs;
  std::vector<uint64_t> begin{0};
  size_t steps() const { return begin.size() - 1; }
};

/// What steps are made by.
struct PackLoad {
  double cost = 0;
  int64_t images = 0;
};

/// Steps that cost the same: deals the packs, in their order, into steps of `packs_per_step` such
/// that those of a window of kStepsPerWindow steps cost about the same (longest_first). Then the
/// steps of each window change places at random. Deterministic.
StepOrder balance_steps(std::span<const PackLoad> packs, int32_t packs_per_step,
                        const Philox& random);

/// Steps of packs that cost the same, so that the ranks of a step do, however many there are.
/// Sorted by cost, the cheapest packs are set apart, as they are what packing left over: a short
/// last step's (of which some may be the costliest instead, where those are few of their kind) and
/// one step more. The others are shuffled within strata of kStratum of cost, and cut into steps,
/// which are shuffled over the whole epoch. O(n log n). Deterministic.
StepOrder group_steps(std::span<const PackLoad> packs, int32_t packs_per_step,
                      const Philox& random);
inline constexpr size_t kStepsPerWindow = 64;
/// Wide, so that many packs can meet; where costs spread evenly, max / mean of a step's costs stays
/// within half of it. Where most are cheap a stratum ends sooner: its costliest pack is at most
/// kOverMean above its mean, which leaves what a step's own mean differs by to a limit of 1 %.
inline constexpr double kStratum = 0.015;
inline constexpr double kOverMean = 0.0085;

/// The packs in the order of the steps.
PlanTable arrange_steps(const PackList& packs, const StepOrder& order,
                        std::vector<uint32_t> dropped);

/// Longest processing time first into `bins` bins of at most `capacity` items each: heaviest item
/// to the lightest bin with room; ties go to the lower index. bins * capacity >= costs.size().
/// Returns ascending item indices per bin. O(n log n + n log bins).
std::vector<std::vector<uint32_t>> longest_first(const std::vector<double>& costs, size_t bins,
                                                 size_t capacity);

/// Largest differencing with equal counts: bins get ceil(items / bins) items each or one less. Runs
/// of `bins` items of like cost begin as partial solutions of one item a bin; the two that spread
/// most are joined, lightest bin to heaviest, until one is left (Karmarkar and Karp 1982; equal
/// counts: Michiels et al., "Performance ratios for the differencing method", 2003). Returns
/// ascending item indices per bin. O(n log n).
std::vector<std::vector<uint32_t>> deal_evenly(std::span<const double> costs, size_t bins);

}  // namespace mm::data
