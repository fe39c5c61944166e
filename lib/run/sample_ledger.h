#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lib/base/file.h"

namespace mm::run {

/// RUN/ledger/rank-RRRRR.jsonl: which samples entered which step, one line a step and rank:
/// {"step", "stage", "epoch", "samples"}. Law 3 is proven from it. A line is written when its step
/// is done; on resume lines after the resumed step are cut.
class SampleLedger {
 public:
  /// Opens this rank's file. Rank 0 first calls `cut` for all ranks' files (then a barrier).
  SampleLedger(const std::filesystem::path& run_directory, int rank);
  void record(int64_t step, const std::string& stage, uint64_t epoch,
              const std::vector<uint64_t>& samples);

  /// Cuts all files of the run after `step`, dropped.jsonl (dropped_ledger.h) too.
  static void cut(const std::filesystem::path& run_directory, int64_t step);

 private:
  File file_;
};

/// One line of the ledger.
struct LedgerRow {
  int64_t step = 0;
  std::string stage;
  uint64_t epoch = 0;
  std::vector<uint64_t> samples;
};

/// All ranks' lines, sorted by step. Throws DataError on a damaged line.
std::vector<LedgerRow> read_ledger(const std::filesystem::path& run_directory);

}  // namespace mm::run
