#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "lib/data/bucket_planner.h"
#include "lib/data/epoch_plan.h"
#include "lib/data/length_types.h"
#include "lib/data/pack_patterns.h"

namespace mm::data {

/// Plans the epochs of one set of samples. What depends on lengths alone (the patterns by which
/// lengths share packs) is made once; an epoch then only draws which samples fill them, in O(n).
/// Immutable, thread-safe. Borrows the sizes.
class EpochPlanner {
 public:
  /// Throws as plan_epoch_table does.
  EpochPlanner(std::span<const SampleSize> sizes, const PlanOptions& options);

  PlanTable plan(uint64_t epoch) const;
  std::span<const SampleSize> sizes() const { return sizes_; }
  const PlanOptions& options() const { return options_; }
  /// The packing in use: that of the options, for kTight the one that it took.
  Packing packing() const { return packing_; }
  /// kBuckets: the planner of those; else null.
  const BucketPlanner* buckets() const { return buckets_ ? &*buckets_ : nullptr; }

 private:
  std::span<const SampleSize> sizes_;
  PlanOptions options_;
  Packing packing_;
  std::vector<uint32_t> dropped_;
  LengthTypes types_;                     ///< of the rows that are not dropped
  PackPatterns patterns_;                 ///< of types_; empty for kShuffled and kNone
  std::optional<BucketPlanner> buckets_;  ///< kBuckets: then this alone
};

}  // namespace mm::data
