#include "tools/bench_program/pairs.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>

namespace mm::bench {
namespace {

double cpu_ms() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

Times time_of(const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  const double cpu_start = cpu_ms();
  run();
  return {
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count(),
      cpu_ms() - cpu_start};
}

}  // namespace

std::vector<Pair> run_pairs(int count, const std::function<void()>& plain,
                            const std::function<void()>& program) {
  plain();
  program();
  std::vector<Pair> pairs(count);
  for (int p = 0; p < count; ++p) {
    if (p % 2 == 0) pairs[p].plain = time_of(plain);
    pairs[p].program = time_of(program);
    if (p % 2 == 1) pairs[p].plain = time_of(plain);
  }
  return pairs;
}

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double part) {
    return values[static_cast<size_t>(part * static_cast<double>(values.size() - 1) + 0.5)];
  };
  return {at(0.25), at(0.5), at(0.75)};
}

std::string hardware() {
  std::ifstream file("/proc/cpuinfo");
  std::string line, name = "unknown processor";
  while (std::getline(file, line)) {
    if (!line.starts_with("model name")) continue;
    name = line.substr(line.find(':') + 2);
    break;
  }
  return fmt::format("{}, {} thread(s) of LibTorch", name, at::get_num_threads());
}

}  // namespace mm::bench
