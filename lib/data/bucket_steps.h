#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "lib/data/bucket_shape.h"
#include "lib/data/epoch_plan.h"

namespace mm::data {

/// A bucket and how many pictures it has.
struct BucketCount {
  BucketShape shape;
  uint64_t pictures = 0;
};

/// What one micro-batch holds: pictures of one bucket, then fillers of the same shape.
struct BucketSlot {
  uint32_t bucket = 0;
  uint32_t real = 0, fillers = 0;
  /// Slots of one level are alike in work: their buckets may change places. kFixed: not this one.
  uint32_t level = kFixed;
  static constexpr uint32_t kFixed = UINT32_MAX;

  uint32_t pictures() const { return real + fillers; }
};

/// The steps of an epoch by counts alone: slots [s * per_step, (s + 1) * per_step) are step s.
struct BucketSteps {
  std::vector<BucketSlot> slots;
  uint32_t per_step = 1;
  std::vector<uint32_t> batch;     ///< [buckets] pictures of a full micro-batch
  std::vector<uint64_t> left_out;  ///< [buckets] pictures in no slot; only with Leftovers::kDrop
  uint64_t steps() const { return slots.size() / per_step; }
};

/// In every step max / mean of the slots' pixels stays within it; so then do the ranks' sums, for
/// each number of ranks that divides the slots.
inline constexpr double kPixelBalance = 1.01;

/// Pictures of a full micro-batch: as many as the budget holds, at least one.
int64_t pictures_in_budget(BucketShape shape, int64_t batch_pixels);

/// Steps in which every slot has the same pixels to within kPixelBalance, and each picture stands
/// in one slot (or is left out). Buckets whose full batches agree in pixels make a level (counts
/// are lowered by up to a tenth where that makes more agree); full steps are of one level, with as
/// many batches of smaller levels of like picture size as the balance allows. What is left over
/// makes smaller batches for as few and as cheap steps as a greedy search finds, filled up with
/// pictures of weight 0; with one slot a step there are no fillers. A pure function of its
/// arguments: the epoch's draw does not matter. Throws DataError if no step is left (all dropped).
/// About O(slots + buckets^2 * batch).
BucketSteps make_bucket_steps(std::span<const BucketCount> buckets, const PlanOptions& options);

}  // namespace mm::data
