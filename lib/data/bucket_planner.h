#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "lib/base/random.h"
#include "lib/data/bucket_steps.h"

namespace mm::data {

/// Plans the epochs of a bucketed set (Packing::kBuckets): the counts of make_bucket_steps, made
/// once, filled with pictures. An epoch draws which pictures of a bucket meet and which are left
/// over, which buckets of a level meet in a step, and the order of the steps. Borrows the sizes.
/// Immutable, thread-safe.
class BucketPlanner {
 public:
  /// Throws UsageError for impossible options, DataError naming a sample that is in no bucket, and
  /// as make_bucket_steps does.
  BucketPlanner(std::span<const SampleSize> sizes, const PlanOptions& options);

  /// O(n).
  PlanTable plan(uint64_t epoch) const;
  /// The buckets that have pictures, ascending by shape, and their steps.
  std::span<const BucketCount> buckets() const { return buckets_; }
  const BucketSteps& steps() const { return steps_; }

 private:
  std::vector<std::vector<uint32_t>> shuffled_rows(const Philox& random) const;

  uint64_t seed_;
  std::vector<BucketCount> buckets_;
  std::vector<uint32_t> bucket_of_;  ///< [rows]
  BucketSteps steps_;
};

}  // namespace mm::data
