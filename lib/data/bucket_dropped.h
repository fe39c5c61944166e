#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/data/epoch_plan.h"

namespace mm::data {

/// A picture that a plan of buckets leaves out (Leftovers::kDrop), and why.
struct DroppedPicture {
  uint32_t row = 0;
  BucketShape bucket;
  std::string reason;  ///< that its bucket had no full batch left, or that no full step was left
};

/// The plan's dropped rows, ascending. O(rows).
std::vector<DroppedPicture> dropped_pictures(std::span<const SampleSize> sizes,
                                             const PlanView& plan, const PlanOptions& options);

}  // namespace mm::data
