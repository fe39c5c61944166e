#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/data/bucket_shape.h"
#include "lib/data/epoch_plan.h"

namespace mm::bench {

/// What one rank trains on in one step: pictures of one shape, fillers included. None: it waits.
struct RankBatch {
  data::BucketShape shape;
  int64_t pictures = 0;

  int64_t pixels() const { return pictures * shape.pixels(); }
};

/// An epoch by one way of making batches: steps of one batch for each rank.
struct Way {
  std::string name;
  std::vector<std::vector<RankBatch>> steps;
};

/// Four epochs over the same pictures: the planner's buckets with dynamic batches; every picture in
/// a square of the largest bucket's area; random batches padded to their own largest sides; random
/// buckets drawn by each rank for itself. The last three have batches of as many pictures as fit of
/// the largest bucket. lib/data/bucket_baselines.h counts their cost without training.
std::vector<Way> ways_of(std::span<const data::SampleSize> sizes, const data::PlanOptions& options,
                         int ranks);

}  // namespace mm::bench
