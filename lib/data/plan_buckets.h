#pragma once
#include <cstdint>
#include <span>

#include "lib/data/plan_table.h"

namespace mm::data {

/// How pictures of equal shape share batches.
struct BucketOptions {
  uint64_t seed = 0;
  int32_t batch = 1;             ///< pictures of a batch at most
  int32_t batches_per_step = 1;  ///< global batch, in batches
  bool drop_short = false;       ///< keep batches that are not full (the default), or drop their
                                 ///< pictures, named in the plan's dropped rows
};

/// The steps of an epoch of bucketed pictures: a "pack" of the table is a batch, all of one bucket.
/// `bucket_of[row]` names the bucket, `work_of[bucket]` what one of its pictures costs (pixels).
/// Each row stands in one batch or among the dropped; batches of like work share a step
/// (group_steps), so that ranks finish together; every rank runs ceil(batches / ranks)
/// micro-batches of a step, missing ones empty with weight 0. A pure function of its arguments.
/// Throws UsageError for impossible options, DataError if no batch is left (an epoch without steps
/// would never end).
PlanTable plan_buckets(std::span<const uint32_t> bucket_of, std::span<const double> work_of,
                       const BucketOptions& options, uint64_t epoch);

}  // namespace mm::data
