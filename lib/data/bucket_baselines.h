#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "lib/data/bucket_report.h"

namespace mm::data {

/// An epoch of pictures in a random order, for the ways of batching that plans are compared with.
struct ShuffledShapes {
  std::vector<BucketShape> shapes;
  int64_t batch_pixels = 0;
  int64_t largest = 1;  ///< pixels of the largest bucket
  double pixels = 0;    ///< of all pictures

  /// Pictures of a batch of fixed count: those of the largest bucket that fit the budget.
  uint64_t fixed_batch() const;
};
ShuffledShapes shuffle_shapes(std::span<const SampleSize> sizes, const PlanOptions& options,
                              uint64_t epoch);

/// The other ways on `ranks` ranks of `batches` micro-batches a step each. O(pictures).
OtherWays other_ways(const ShuffledShapes& epoch, int ranks, int batches);

}  // namespace mm::data
