#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "lib/data/bucket_steps.h"

namespace mm::data {

/// Pictures of a bucket that full steps had no room for.
struct BucketLeft {
  uint32_t bucket = 0;
  uint64_t pictures = 0;
  int64_t pixels = 0;  ///< of one
  uint32_t batch = 1;  ///< of a micro-batch at most
};

/// Steps of `per_step` slots for all these pictures, appended to `slots`: batches as large as make
/// the slots of a step equal in pixels (kPixelBalance), the rest fillers. Of several greedy ways
/// the one with the least pixels, each step counting kStepOverhead of a full one on top.
/// A step's first slot is never of fillers alone.
void pack_leftovers(std::span<const BucketLeft> left, uint32_t per_step,
                    std::vector<BucketSlot>& slots);
inline constexpr double kStepOverhead = 0.02;

}  // namespace mm::data
