#pragma once
#include <cstdint>
#include <span>

#include "lib/base/json.h"
#include "lib/data/epoch_plan.h"

namespace mm::data {

/// How unequal a step's ranks are in one quantity: max / mean over the ranks, 1 is even. Over the
/// steps of the epoch.
struct Imbalance {
  double mean = 1, p99 = 1, worst = 1;
};

/// What a plan wastes and how even it is; made from sizes alone, no sample is read.
struct PlanReport {
  uint64_t epoch = 0;
  int ranks = 1;
  uint64_t samples = 0, tokens = 0, images = 0, targets = 0;
  uint64_t packs = 0, steps = 0;
  uint64_t packs_lower_bound = 0;  ///< ceil(tokens / sequence length): no packing has fewer
  uint64_t packs_in_last_step = 0;
  int micro_batches_per_rank = 0;  ///< in a full step
  double padding =
      0;  ///< 1 - tokens / (packs * sequence length); what padding to full packs would add
  double samples_per_pack = 0;
  Imbalance rank_tokens, rank_attention, rank_images;
  double step_cost_worst = 1;  ///< costliest full step / mean full step
};

PlanReport report_plan(std::span<const SampleSize> sizes, const PlanOptions& options,
                       uint64_t epoch, int ranks);
/// With "schema": 1.
Json to_json(const PlanReport& report);

}  // namespace mm::data
