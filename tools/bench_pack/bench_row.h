#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace mm::bench {

/// Wall and processor seconds of this process, all threads.
struct Spent {
  double wall_s = 0, cpu_s = 0;
};
Spent spend(const std::function<void()>& body);

/// One line of a table; tools/peers/*.py print the same columns as JSON lines.
struct Row {
  std::string what;     ///< "pack" or "load"
  std::string system;   ///< with version
  std::string storage;  ///< "raw", "jpeg", "files"
  uint64_t samples = 0;
  Spent spent;
  double first_batch_ms = 0;  ///< 0: not measured
  double bytes_sample = 0;
  double limit_cpu_s = 0;  ///< what cannot be avoided for the same samples; 0: not known
};

/// "2 x Intel ..., 24 GiB".
std::string hardware();
/// Text table, or a JSON line a row.
void print(const std::vector<Row>& rows, bool json);

/// Pictures in and below a folder, sorted.
std::vector<std::filesystem::path> pictures_below(const std::filesystem::path& folder);

}  // namespace mm::bench
