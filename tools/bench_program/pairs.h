#pragma once
#include <functional>
#include <string>
#include <vector>

namespace mm::bench {

/// Time of one run: of the clock on the wall, and of this process's CPUs, which other work on the
/// machine moves less.
struct Times {
  double wall_ms = 0;
  double cpu_ms = 0;
};

struct Pair {
  Times plain, program;
};

/// Runs both once untimed, then `count` pairs, the order within a pair alternating.
std::vector<Pair> run_pairs(int count, const std::function<void()>& plain,
                            const std::function<void()>& program);

/// Median and quartiles.
struct Spread {
  double low = 0, median = 0, high = 0;
};
Spread spread_of(std::vector<double> values);

/// "Intel Xeon ..., 1 thread": processor from /proc/cpuinfo and LibTorch's threads.
std::string hardware();

}  // namespace mm::bench
