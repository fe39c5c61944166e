#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

#include "lib/base/json.h"
#include "lib/health/finding.h"
#include "lib/health/node_report.h"

namespace mm::health {

/// What should stay as it is: {"gpu.count": 8, "gpu.0.name": "...", "ib.mlx5_0/1.rate": "...",
/// "speed.gemm_gflop_s": 812.0, ...}. Only what was read.
Json node_facts(const NodeReport& report);

/// What counts up: {"ib.mlx5_0/1.symbol_error": 0, "gpu.0.ecc_corrected": 3, ...}.
Json node_counters(const NodeReport& report);

/// Writes {"schema": 1, "kind": "mmprobe-baseline", "host", "time_unix_ms", "facts", "counters"}.
void learn_baseline(const NodeReport& report, const std::filesystem::path& file);

/// Facts that changed (F51 for hardware, F52 for versions), measured speeds below by more than
/// `tolerance` (F56), and error counters that rose since (F10, F15, F49, F50). Throws DataError
/// naming the file.
std::vector<Finding> compare_baseline(const NodeReport& report, const std::filesystem::path& file,
                                      double tolerance);

/// What it means that a counter rose from `was` to `is`: at most one finding.
std::vector<Finding> judge_growth(const std::string& counter, uint64_t was, uint64_t is);

}  // namespace mm::health
