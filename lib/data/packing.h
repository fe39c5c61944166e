#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "lib/data/epoch_plan.h"

namespace mm::data {

/// Capacities of one pack.
struct PackLimits {
  int32_t tokens = 0;  ///< at most, > 0
  int32_t images = 0;  ///< at most; 0: no cap
};

/// Best-fit decreasing with two capacities: longest sample first, each into the fullest pack that
/// still takes it. `rows` are indices into `sizes`; equal lengths keep the order of `rows`, so a
/// shuffled `rows` gives a shuffled result. Each row stands in exactly one pack. O(n log n) while
/// the image cap seldom binds (at most kFitTries packs are tried a row). Every size must fit the
/// limits (plan_epoch checks).
std::vector<Pack> pack_rows(std::span<const SampleSize> sizes, std::span<const uint32_t> rows,
                            const PackLimits& limits);

/// First fit in the order of `rows` into at most kOpenPacks unfilled packs (the fullest is closed
/// when one more is needed), with the same capacities: with shuffled `rows` a pack is a random draw
/// of samples, whatever their lengths, at some padding. O(n).
std::vector<Pack> pack_in_order(std::span<const SampleSize> sizes, std::span<const uint32_t> rows,
                                const PackLimits& limits);

/// A pack of exactly these rows, with its sums.
Pack make_pack(std::span<const SampleSize> sizes, std::vector<uint32_t> rows);

/// Candidates that best fit looks at, from the fullest, before it opens a new pack.
inline constexpr int kFitTries = 128;
/// Packs that pack_in_order fills at a time.
inline constexpr size_t kOpenPacks = 8;

}  // namespace mm::data
