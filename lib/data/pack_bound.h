#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "lib/data/pack_patterns.h"

namespace mm::data {

/// A number of packs that no packing can stay below, and what proves it.
struct PackBound {
  uint64_t packs = 0;
  std::string_view proof;  ///< "sum", "pairs" or "prices"
};

/// The largest of: each capacity's sum divided by the capacity; for every split of lengths into
/// large, middle and small, Martello and Toth's L2 ("Knapsack Problems", 1990, chapter 8), on
/// tokens; and with `prices`, the best prices that a linear program finds, where a price list
/// proves sum(prices) / (dearest pack), computed in integers (a dual-feasible function over all
/// capacities). O(types), with prices seconds.
PackBound pack_bound(std::span<const LengthType> types, const PackLimits& limits,
                     bool prices = true);

}  // namespace mm::data
