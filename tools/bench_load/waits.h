#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace mm::bench {

struct WaitOptions {
  std::filesystem::path set, files, cache;  ///< `cache` is made and emptied
  double compute_ms = 100;                  ///< that the consumer takes for a step
  int batch = 32, threads = 1, steps = 24, side = 336, repeat = 1;
};

/// What a consumer waited for data.
struct Waits {
  std::string from;
  double mean_ms = 0, worst_ms = 0;  ///< of a step, the first one left out
  double first_ms = 0;               ///< of the first step, opening included
};

/// The same pictures from their files, from a packed set, and from a packed set whose shards are in
/// a node cache; files and shards are dropped from the page cache first (posix_fadvise).
std::vector<Waits> measure_waits(const WaitOptions& options);
void print(const std::vector<Waits>& waits, const WaitOptions& options);

}  // namespace mm::bench
