#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "lib/base/json.h"
#include "lib/data/epoch_plan.h"
#include "lib/data/imbalance.h"
#include "lib/data/shuffle_quality.h"

namespace mm::data {

/// The pack that costs most: what runs before step 0 on request.
struct CostliestPack {
  uint64_t step = 0, samples = 0;
  int64_t tokens = 0, images = 0;
  double cost_over_mean = 1;
};

/// What a plan wastes and how even it is; made from sizes alone, no sample is read.
struct PlanReport {
  uint64_t epoch = 0;
  int ranks = 1;
  Packing packing = Packing::kTight;                          ///< in use
  uint64_t samples = 0, tokens = 0, images = 0, targets = 0;  ///< planned
  uint64_t dropped = 0, repeated = 0;                         ///< a plan repeats none
  uint64_t packs = 0, steps = 0;
  uint64_t packs_lower_bound = 0;  ///< no packing has fewer: pack_bound
  std::string bound_proof;
  uint64_t packs_in_last_step = 0;
  int micro_batches_per_rank = 0;  ///< in a full step
  uint64_t empty_slots = 0;  ///< micro-batches without a pack (weight 0) in the epoch, of all ranks
  double padding =
      0;  ///< 1 - tokens / (packs * sequence length); what padding to full packs would add
  double padding_lower_bound = 0;  ///< the same at packs_lower_bound
  double bound_gap = 0;            ///< packs / packs_lower_bound - 1
  double samples_per_pack = 0;
  uint64_t distinct_pack_lengths = 0;  ///< shapes of a packed batch
  Imbalance rank_cost, rank_tokens, rank_attention, rank_images;
  double step_cost_worst = 1;  ///< costliest full step / mean full step
  ShuffleQuality shuffle;
  CostliestPack costliest;
  std::string plan_hash;    ///< hash_plan
  double plan_seconds = 0;  ///< to make the plan; the bound and the figures come on top
};

/// Plans the epoch and measures it for `ranks` ranks. Not for buckets, which have a report of their
/// own (bucket_report.h).
PlanReport report_plan(std::span<const SampleSize> sizes, const PlanOptions& options,
                       uint64_t epoch, int ranks);
/// Measures a plan that is there. `packing`: that in use.
PlanReport report_plan(std::span<const SampleSize> sizes, const PlanView& plan,
                       const PlanOptions& options, int ranks);
/// All but the lower bound of packs and what is told of it (padding too): proving takes longest.
PlanReport measure_plan(std::span<const SampleSize> sizes, const PlanView& plan,
                        const PlanOptions& options, int ranks);
/// With "schema": 1.
Json to_json(const PlanReport& report);
/// A table for people, with a line feed at the end. Without the seconds, it is the same for every
/// run.
std::string to_text(const PlanReport& report, const PlanOptions& options);

}  // namespace mm::data
