#include "tools/bench_pack/bench_row.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/thread_pool.h"

namespace mm::bench {
namespace {

double cpu_s() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

Spent spend(const std::function<void()>& body) {
  const double wall = system_clock().monotonic_s(), cpu = cpu_s();
  body();
  return {system_clock().monotonic_s() - wall, cpu_s() - cpu};
}

std::string hardware() {
  std::ifstream info("/proc/cpuinfo");
  std::string name = "unknown CPU";
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) name = line.substr(line.find(':') + 2);
  }
  const double gib = static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                     static_cast<double>(sysconf(_SC_PAGE_SIZE)) / (1 << 30);
  return fmt::format("{} cores of {}, {:.0f} GiB", usable_cores(), name, gib);
}

void print(const std::vector<Row>& rows, bool json) {
  if (!json) {
    fmt::print("{:<44} {:<6} {:>9} {:>11} {:>9} {:>11} {:>9}\n", "", "stored", "samples",
               "per s, core", "of limit", "1st batch", "B/sample");
  }
  for (const Row& row : rows) {
    const double rate = static_cast<double>(row.samples) / row.spent.cpu_s;
    const double of_limit = row.limit_cpu_s / row.spent.cpu_s;
    if (json) {
      const Json line = {{"what", row.what},
                         {"system", row.system},
                         {"storage", row.storage},
                         {"samples", row.samples},
                         {"wall_s", row.spent.wall_s},
                         {"cpu_s", row.spent.cpu_s},
                         {"per_core_s", rate},
                         {"first_batch_ms", row.first_batch_ms},
                         {"bytes_sample", row.bytes_sample},
                         {"of_limit", of_limit}};
      fmt::print("{}\n", line.dump());
      continue;
    }
    const auto or_dash = [](double value, const std::string& text) {
      return value > 0 ? text : std::string("-");
    };
    fmt::print("{:<44} {:<6} {:>9} {:>11.1f} {:>9} {:>11} {:>9}\n", row.system, row.storage,
               row.samples, rate, or_dash(of_limit, fmt::format("{:.2f}", of_limit)),
               or_dash(row.first_batch_ms, fmt::format("{:.1f} ms", row.first_batch_ms)),
               or_dash(row.bytes_sample, fmt::format("{:.0f}", row.bytes_sample)));
  }
}

std::vector<std::filesystem::path> pictures_below(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string ending = entry.path().extension().string();
    if (ending == ".jpg" || ending == ".jpeg" || ending == ".png") found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace mm::bench
