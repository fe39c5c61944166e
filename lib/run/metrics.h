#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/file.h"
#include "lib/base/json.h"
#include "lib/run/tensorboard.h"

namespace mm::run {

/// What is known of one training step, over all ranks. The step line, metrics.jsonl and TensorBoard
/// come from this one struct.
struct StepRecord {
  int64_t step = 0;  ///< global step, counted from 1 when it is done
  std::string stage;
  uint64_t epoch = 0;                ///< of the stage's data set
  double loss = 0;                   ///< sum over all targets / their count, before the update
  double grad_norm = 0;              ///< true global norm, before clipping
  std::map<std::string, double> lr;  ///< per part
  int64_t tokens = 0, targets = 0, images = 0, samples = 0;   ///< all ranks, padding left out
  double step_ms = 0, data_wait_ms = 0, exposed_comm_ms = 0;  ///< waits: the worst rank
  double tokens_s = 0;
  double mfu = 0;  ///< model FLOPs (padding left out, recompute not counted) / (time * ranks *
                   ///< measured GEMM rate)
  double memory_gib = 0;  ///< peak resident set of the largest rank
  bool skipped = false;   ///< no targets in the step: nothing was updated

  Json to_json() const;
  static StepRecord from_json(const Json& json);
  /// "step 120 align loss 1.234 grad_norm 0.98 tokens_s 12345 mfu 0.31 data_wait_ms 0.2 mem_gib
  /// 0.51"
  std::string line() const;
};

/// RUN/metrics.jsonl and RUN/tb, written by rank 0. On resume, records after `resume_step` (made by
/// steps that are about to be run again) are cut off, so that each step stands there once.
class MetricsWriter {
 public:
  MetricsWriter(const std::filesystem::path& run_directory, int64_t resume_step);
  void write(const StepRecord& record);

 private:
  File jsonl_;
  TensorboardWriter tensorboard_;
};

/// All whole lines of RUN/metrics.jsonl; a last line without its newline is left out.
std::vector<StepRecord> read_metrics(const std::filesystem::path& run_directory);

/// Cuts `path` (JSON lines that have a "step") after the last line whose step is at most `step`. No
/// file: nothing to do.
void cut_lines_after_step(const std::filesystem::path& path, int64_t step);

}  // namespace mm::run
