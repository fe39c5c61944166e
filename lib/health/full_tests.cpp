#include "lib/health/full_tests.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <thread>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/thread_pool.h"
#include "lib/health/host_report.h"

namespace mm::health {
namespace {

void measure_cores(const FullTestOptions& options, FullTests& tests) {
  std::vector<GemmResult> results(static_cast<size_t>(tests.cores));
  std::vector<std::thread> threads;
  for (int core = 0; core < tests.cores; ++core)
    threads.emplace_back(
        [&, core] { results[static_cast<size_t>(core)] = run_gemm(core, options.seconds); });
  for (std::thread& thread : threads) thread.join();
  std::map<uint64_t, int> votes;
  double sum = 0;
  for (const GemmResult& result : results) {
    ++votes[result.hash];
    tests.core_gflop_s.push_back(1e-9 * result.flop / result.seconds);
    sum += tests.core_gflop_s.back();
  }
  tests.gemm_gflop_s = sum;
  const auto right = std::max_element(
      votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  for (int core = 0; core < tests.cores; ++core) {
    if (results[static_cast<size_t>(core)].hash != right->first) tests.wrong_cores.push_back(core);
  }
}

// A quarter of what is free, within our control group, at most 64 GiB.
uint64_t memory_to_test(const FullTestOptions& options) {
  if (options.memory_bytes != 0) return options.memory_bytes;
  const MemoryReport memory = read_memory();
  uint64_t room = memory.available_bytes.value_or(uint64_t{1} << 30);
  if (memory.cgroup_limit_bytes) room = std::min(room, *memory.cgroup_limit_bytes);
  return std::min(room / 4, uint64_t{64} << 30);
}

void measure_disk(const FullTestOptions& options, FullTests& tests) {
  try {
    const DiskRate rate = disk_rate(options.directory, options.disk_bytes);
    tests.disk_write_mb_s = rate.write_mb_s;
    tests.disk_read_mb_s = rate.read_mb_s;
  } catch (const Error& error) {
    tests.problems.emplace_back(error.what());
  }
}

struct Rate {
  const char* where;
  const char* unit;
  std::optional<double> measured, expected;
};

void judge_rate(const Rate& rate, double tolerance, std::vector<Finding>& findings) {
  if (!rate.measured) {
    findings.push_back(not_checked(rate.where, "not measured"));
    return;
  }
  const std::string value = fmt::format("{:.1f} {}", *rate.measured, rate.unit);
  if (!rate.expected) {
    findings.push_back(ok(rate.where, value + " (no expectation to judge by)"));
  } else if (*rate.measured < (1 - tolerance) * *rate.expected) {
    findings.push_back(
        {.level = Level::kBad,
         .code = "F56",
         .where = rate.where,
         .what = "slower than expected",
         .evidence = fmt::format("{}, {:.0f} % of {:.1f}", value,
                                 100 * *rate.measured / *rate.expected, *rate.expected),
         .action = "exclude the node; compare with its neighbours"});
  } else {
    findings.push_back(ok(rate.where, fmt::format("{}, expected {:.1f}", value, *rate.expected)));
  }
}

void judge_cores(const FullTests& tests, std::vector<Finding>& findings) {
  if (!tests.wrong_cores.empty())
    findings.push_back(
        {.level = Level::kBad,
         .code = "F55",
         .where = fmt::format("core {}", fmt::join(tests.wrong_cores, ", ")),
         .what = "computes other bits than the other cores",
         .evidence = fmt::format("{} cores agree", tests.cores - int(tests.wrong_cores.size())),
         .action = "exclude the node; drain it for a check of the processor"});
  std::vector<double> sorted = tests.core_gflop_s;
  if (sorted.size() < 4) return;
  std::sort(sorted.begin(), sorted.end());
  const double median = sorted[sorted.size() / 2];
  for (size_t core = 0; core < tests.core_gflop_s.size(); ++core) {
    // Something else may run on a core for a while; half the speed for seconds is more than that.
    if (tests.core_gflop_s[core] >= 0.5 * median) continue;
    findings.push_back(
        {.level = Level::kWarn,
         .code = "F05",
         .where = fmt::format("core {}", core),
         .what = "far slower than the other cores",
         .evidence = fmt::format("{:.1f} GFLOP/s, median {:.1f}", tests.core_gflop_s[core], median),
         .action = "see what else runs on it"});
  }
}

}  // namespace

FullTests run_full_tests(const FullTestOptions& options) {
  FullTests tests;
  const double start_s = system_clock().monotonic_s();
  // First, while this process has no threads: the GPUs are measured in a child.
  tests.devices = options.measure_devices ? options.measure_devices()
                                          : DeviceTests{.problem = "nothing here measures GPUs"};
  tests.cores = usable_cores();
  measure_cores(options, tests);
  tests.memory_copy_gb_s = copy_rate(tests.cores, options.seconds);
  try {
    const uint64_t bytes = memory_to_test(options);
    tests.memory_wrong_words = test_memory(bytes, tests.cores);
    tests.memory_tested_bytes = bytes;
  } catch (const Error& error) {
    tests.problems.emplace_back(error.what());
  }
  measure_disk(options, tests);
  tests.seconds = system_clock().monotonic_s() - start_s;
  return tests;
}

std::vector<Finding> judge_full(const FullTests& tests, const Expectation& expected) {
  std::vector<Finding> findings;
  const auto& e = expected.speed;
  judge_cores(tests, findings);
  judge_rate({"fp32 product", "GFLOP/s", tests.gemm_gflop_s, e.gemm_gflop_s}, e.tolerance,
             findings);
  judge_rate({"memory copy", "GB/s", tests.memory_copy_gb_s, e.memory_copy_gb_s}, e.tolerance,
             findings);
  judge_rate({"disk write", "MB/s", tests.disk_write_mb_s, e.disk_write_mb_s}, e.tolerance,
             findings);
  judge_rate({"disk read", "MB/s", tests.disk_read_mb_s, e.disk_read_mb_s}, e.tolerance, findings);
  if (tests.memory_wrong_words > 0) {
    findings.push_back(
        {.level = Level::kBad,
         .code = "F55",
         .where = "memory",
         .what = "does not keep what is written",
         .evidence = fmt::format("{} words of 8 bytes wrong in {} MiB", tests.memory_wrong_words,
                                 tests.memory_tested_bytes.value_or(0) >> 20),
         .action = "exclude the node; drain it for a memory check"});
  } else if (tests.memory_tested_bytes) {
    findings.push_back(
        ok("memory test", fmt::format("{} MiB kept every bit", *tests.memory_tested_bytes >> 20)));
  }
  for (const std::string& problem : tests.problems)
    findings.push_back(not_checked("full test", problem));
  for (Finding& finding : judge_devices(tests.devices, expected))
    findings.push_back(std::move(finding));
  return findings;
}

}  // namespace mm::health
