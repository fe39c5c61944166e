#pragma once
#include <span>

#include "lib/data/pack_patterns.h"

namespace mm::data {

inline constexpr size_t kSearchClasses = 256;

/// Merges lengths into at most `classes` classes, solves the linear program of the fewest packs
/// over them (pack_lp.h), takes whole packs of its solution, and packs what is left over with the
/// better of pack_exact and pack_best_fit. Losses against the best packing: the rounding to
/// classes, and that of at most `classes` fractions; so it is near the bound where there are many
/// more packs than classes. Seconds, whatever the number of samples.
PackPatterns pack_search(std::span<const LengthType> types, const PackLimits& limits,
                         size_t classes = kSearchClasses);
}  // namespace mm::data
