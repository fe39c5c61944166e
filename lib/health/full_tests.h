#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/health/device_tests.h"
#include "lib/health/expectation.h"
#include "lib/health/finding.h"

namespace mm::health {

struct FullTestOptions {
  double seconds = 5;                       ///< of each rate
  uint64_t memory_bytes = 0;                ///< memory to test; 0: a quarter of what is available
  uint64_t disk_bytes = uint64_t{1} << 30;  ///< written and read below the first path
  std::filesystem::path directory = ".";
  /// Measures the GPUs with what has LibTorch, which this library has not; nothing: not measured.
  std::function<DeviceTests()> measure_devices;
};

/// What `--full` measures; nothing: not measured, `problems` says why.
struct FullTests {
  int cores = 0;
  std::optional<double> gemm_gflop_s;      ///< fp32, all cores together
  std::vector<double> core_gflop_s;        ///< by core, while all work
  std::vector<int> wrong_cores;            ///< cores whose result had other bits than the rest
  std::optional<double> memory_copy_gb_s;  ///< all cores, bytes read and written
  std::optional<uint64_t> memory_tested_bytes;
  uint64_t memory_wrong_words = 0;  ///< 8-byte words that did not read back
  std::optional<double> disk_write_mb_s, disk_read_mb_s;
  DeviceTests devices;
  std::vector<std::string> problems;
  double seconds = 0;
};

/// Runs the tests one after another on all cores that we may use.
FullTests run_full_tests(const FullTestOptions& options);

/// F55 wrong bits, F56 slower than expected (by more than the tolerance), F05 one core far slower
/// than the others.
std::vector<Finding> judge_full(const FullTests& tests, const Expectation& expected);

/// One core's product of two fp32 matrices, [side, side], from fixed numbers: FLOP done, seconds,
/// and a hash of the result's bits, which every core of every healthy node of one kind agrees on.
struct GemmResult {
  double flop = 0, seconds = 0;
  uint64_t hash = 0;
};
GemmResult run_gemm(int core, double seconds);

/// GB/s read and written by copies on `threads` cores for `seconds`.
double copy_rate(int threads, double seconds);

/// Writes patterns over `bytes` of memory and reads them back on `threads` cores; words that
/// differ. Throws IoError if the memory cannot be had.
uint64_t test_memory(uint64_t bytes, int threads);

struct DiskRate {
  double write_mb_s = 0, read_mb_s = 0;
};
/// Writes a file below `directory`, synchronises, drops it from the cache, reads it back, compares,
/// deletes it. Throws IoError; DataError if other bytes came back.
DiskRate disk_rate(const std::filesystem::path& directory, uint64_t bytes);

}  // namespace mm::health
