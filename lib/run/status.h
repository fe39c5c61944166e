#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "lib/base/json.h"
#include "lib/base/verdict.h"
#include "lib/run/metrics.h"

namespace mm::run {

/// Where a run stands, from its directory alone; nothing is changed and the run may be going on.
struct RunStatus {
  std::string run_id;
  std::optional<StepRecord> last;  ///< newest line of metrics.jsonl
  std::optional<Verdict> verdict;  ///< of the last start that ended
  std::string checkpoint;          ///< newest committed, as RUN/ckpt/latest names it; empty: none
  double seconds_since_step = -1;  ///< age of metrics.jsonl, -1: none

  Json to_json() const;
  std::string text() const;
};

/// Throws UsageError if `run` is no run's directory.
RunStatus read_status(const std::filesystem::path& run);

}  // namespace mm::run
