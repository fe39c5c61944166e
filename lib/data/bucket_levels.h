#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "lib/data/bucket_steps.h"

namespace mm::data {

/// Buckets whose batches agree in pixels to within kLevelWidth.
struct BucketLevel {
  std::vector<uint32_t> buckets;
  int64_t most = 0, least = 0;  ///< pixels of its batches
};
/// How far the batches of a level lie apart at most, as a share of the largest.
inline constexpr double kLevelWidth = 0.009;

/// Buckets that have pictures, in groups of like picture size, smallest first: within a kin the
/// largest has at most kKin times the pixels of the smallest, so attention costs them alike.
std::vector<std::vector<uint32_t>> bucket_kins(std::span<const BucketCount> buckets);
inline constexpr double kKin = 1.5;

/// Cuts a kin into levels, one after the other that which most pixels can belong to, smallest
/// first. `batch` [buckets] has the pictures of full batches, and on return those that agree: up to
/// a tenth fewer (in kins of up to kMostSearched buckets). O(buckets^3 * min(batch / 10,
/// kMostCandidates)) at worst.
std::vector<BucketLevel> bucket_levels(std::span<const BucketCount> buckets,
                                       std::span<const uint32_t> kin, std::vector<uint32_t>& batch);
inline constexpr size_t kMostSearched = 128;
/// Batch sizes of a bucket that are tried for a level: each, of batches of up to ten times as many
/// pictures.
inline constexpr int64_t kMostCandidates = 1024;

}  // namespace mm::data
