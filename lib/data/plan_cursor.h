#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "lib/data/epoch_plan.h"

namespace mm::data {

/// One global step of a stage.
struct PlannedStep {
  uint64_t global_step = 0;  ///< from 0 in the stage
  PlanPosition position;
  std::vector<Pack> packs;
  int64_t tokens = 0, images = 0, targets = 0;  ///< sums over all packs, so over all ranks
};

/// Walks the steps of a stage over epoch borders without end: step k -> epoch and step of that
/// epoch. How many steps an epoch has depends on its packs, so finding step k plans the epochs
/// before it once (milliseconds each for 10,000 samples). Holds one epoch's plan. Not thread-safe.
class PlanCursor {
 public:
  /// Throws as plan_epoch does, and DataError if there are no samples at all.
  PlanCursor(std::vector<SampleSize> sizes, const PlanOptions& options);

  /// Any step; going on to the next one costs nothing but its copy.
  PlannedStep at(uint64_t global_step);
  /// Steps of the epoch that `at` last returned a step of (before that: of epoch 0).
  uint64_t steps_in_epoch() const { return plan_.steps.size(); }
  const std::vector<SampleSize>& sizes() const { return sizes_; }

 private:
  void load_epoch(uint64_t epoch, uint64_t first_step);
  const std::vector<SampleSize> sizes_;
  const PlanOptions options_;
  EpochPlan plan_;
  uint64_t epoch_ = 0;
  uint64_t first_step_ = 0;  ///< global step at which epoch_ begins
};

}  // namespace mm::data
