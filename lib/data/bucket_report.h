#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/data/bucket_steps.h"
#include "lib/data/epoch_plan.h"
#include "lib/data/imbalance.h"

namespace mm::data {

/// An epoch by one way of making batches, on some ranks.
struct EpochCost {
  Imbalance pixels;  ///< of the ranks, step by step, fillers and padding included
  uint64_t steps = 0;
  uint64_t repeated = 0;  ///< pictures that count twice
  /// Sum over steps of the pixels of the rank that has most, over what the real pixels are a rank:
  /// 1 is an epoch without padding, fillers or waiting.
  double time = 1;
};

/// Batches by other rules, for comparison.
struct OtherWays {
  /// Random batches of one count, the largest bucket's, each padded to its own largest sides.
  EpochCost padded;
  /// Every rank sorts its own share of a shuffled epoch into buckets and takes a batch (of that
  /// same count) when a bucket has one; short ones come last; ranks that have no batch left wait.
  EpochCost sampled;
  /// Every picture in one square that has the area of the largest bucket.
  EpochCost square;
};

/// One number of ranks.
struct RankRow {
  int ranks = 1, batches_per_step = 1;
  uint64_t fillers = 0;     ///< pictures of weight 0 in the epoch
  double filler_share = 0;  ///< of all pixels
  uint64_t dropped = 0;
  EpochCost plan;
  OtherWays others;
  double seconds = 0;  ///< to make the plan
};

struct BucketPlanReport {
  uint64_t epoch = 0, pictures = 0;
  int64_t batch_pixels = 0;
  std::vector<BucketCount> buckets;
  std::vector<int64_t> batch;         ///< [buckets] pictures in the budget
  std::vector<uint64_t> over_budget;  ///< places of buckets of which one picture passes the budget
  std::vector<RankRow> rows;
  std::string plan_hash;  ///< hash_plan of the last row's plan
};

/// Ranks to report: with options.packs_per_step > 0 that plan on `ranks` (at least 1; they should
/// divide the batches) and on the powers of two that do; else, `ranks` 0, for 1, 2, 4 ... 1,024
/// ranks a plan each with one batch a rank; with `ranks` > 0 that one. Balance is measured on up to
/// kReportedSteps steps, evenly spread. `compare`: the other ways too. Throws as BucketPlanner
/// does.
struct BucketReportOptions {
  PlanOptions plan;
  uint64_t epoch = 0;
  int ranks = 0;
  bool compare = true;
};
inline constexpr uint64_t kReportedSteps = 512;
BucketPlanReport report_bucket_plan(std::span<const SampleSize> sizes,
                                    const BucketReportOptions& options);

/// With "schema": 1 and "packing": "buckets".
Json to_json(const BucketPlanReport& report);
/// A table for people, with a line feed at the end; without the seconds.
std::string to_text(const BucketPlanReport& report);

}  // namespace mm::data
