#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

#include "lib/data/epoch_plan.h"
#include "lib/data/epoch_planner.h"
#include "lib/data/plan_file.h"

namespace mm::data {

/// One global step of a stage.
struct PlannedStep {
  uint64_t global_step = 0;  ///< from 0 in the stage
  PlanPosition position;
  std::vector<Pack> packs;
  int64_t tokens = 0, images = 0, targets = 0;  ///< sums over all packs, so over all ranks
};

/// Walks the steps of a stage over epoch borders without end: step k -> epoch and step of that
/// epoch. How many steps an epoch has may depend on its draw, so finding step k plans the epochs
/// before it once (milliseconds each for 10,000 samples). Holds one epoch's plan. Not thread-safe.
class PlanCursor {
 public:
  /// `plan_directory`: see EpochSteps. Throws as that and EpochPlanner do, and DataError if there
  /// are no samples at all, or none that fits.
  PlanCursor(std::vector<SampleSize> sizes, const PlanOptions& options,
             std::filesystem::path plan_directory = {});
  PlanCursor(const PlanCursor&) = delete;

  /// Any step; going on to the next one costs nothing but its copy.
  PlannedStep at(uint64_t global_step);
  /// Steps of the epoch that `at` last returned a step of (before that: of epoch 0).
  uint64_t steps_in_epoch() const { return steps_.view().steps(); }
  /// The costliest pack of that epoch, as a step of one pack at the position of the epoch's first:
  /// to run before step 0 and throw away, so that memory runs out at once or never.
  PlannedStep costliest() const;
  const std::vector<SampleSize>& sizes() const { return sizes_; }

 private:
  void load_epoch(uint64_t epoch, uint64_t first_step);
  const std::vector<SampleSize> sizes_;
  const EpochPlanner planner_;
  const std::filesystem::path plan_directory_;
  EpochSteps steps_;
  uint64_t epoch_ = 0;
  uint64_t first_step_ = 0;  ///< global step at which epoch_ begins
};

}  // namespace mm::data
