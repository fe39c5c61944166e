#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "lib/data/epoch_plan.h"

namespace mm::run {

/// RUN/ledger/dropped.jsonl, written by rank 0: which pictures an epoch leaves out
/// (stage.leftovers = "drop"), and why. A line for the pictures of one bucket that have one reason:
/// {"step", "stage", "epoch", "bucket": "512x256", "reason", "samples": [...]}; "step" is the first
/// of the epoch, after which the lines are written. On resume lines after the resumed step are cut
/// (SampleLedger::cut).
struct DroppedEpoch {
  int64_t step = 0;
  std::string stage;
  uint64_t epoch = 0;  ///< of the stage's data set
};
/// Plans the epoch again. Throws as plan_epoch_table does, and IoError. O(rows).
void write_dropped(const std::filesystem::path& run_directory, const DroppedEpoch& epoch,
                   std::span<const data::SampleSize> sizes, const data::PlanOptions& options);

}  // namespace mm::run
