// Prints one line a figure: what, value, unit. Arguments: none.
#include <fmt/format.h>
#include <sys/resource.h>

#include <cmath>
#include <filesystem>

#include "lib/base/clock.h"
#include "lib/base/process.h"
#include "lib/health/watch.h"
#include "lib/probe/pair_rounds.h"

namespace {

using namespace mm;

// Of this process and of the children that have ended.
double processor_s() {
  const auto of = [](int who) {
    rusage use{};
    ::getrusage(who, &use);
    return static_cast<double>(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           1e-6 * static_cast<double>(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
  };
  return of(RUSAGE_SELF) + of(RUSAGE_CHILDREN);
}

void bench_node() {
  double best_s = 1e9;
  for (int run = 0; run < 5; ++run) best_s = std::min(best_s, health::read_node({}).seconds);
  fmt::print("node, reads only: {:.3f} s\n", best_s);
}

// What a job's prologue waits for: the program from its start to its end.
void bench_preflight() {
  const auto program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "mmprobe";
  if (!std::filesystem::exists(program)) return;
  double best_s = 1e9;
  for (int run = 0; run < 5; ++run) {
    const double start_s = system_clock().monotonic_s();
    Child::spawn({.command = {program.string(), "node", "--busy-ok"}, .output = "/dev/null"})
        .wait();
    best_s = std::min(best_s, system_clock().monotonic_s() - start_s);
  }
  fmt::print("preflight, mmprobe node --busy-ok as a program: {:.3f} s\n", best_s);
}

void bench_full() {
  health::NodeOptions options;
  options.full = true;
  fmt::print("node --full: {:.1f} s\n", health::read_node(options).seconds);
}

// Processor time of one sample, which at 1 Hz is the share of a core.
void bench_watch() {
  constexpr int kSamples = 200;
  const double start_s = processor_s();
  {
    health::Watcher watcher({});
    for (int i = 0; i < kSamples; ++i) watcher.sample();
  }
  fmt::print("watch at 1 Hz, its readers included: {:.3f} % of a core\n",
             100 * (processor_s() - start_s) / kSamples);
}

void bench_rounds() {
  for (const int nodes : {16, 63, 256, 1024}) {
    std::vector<std::string> names(static_cast<size_t>(nodes), "n");
    const auto report =
        probe::run_pairs(names, {"eth0"}, {}, [&](const probe::Slot& slot, int rail) {
          std::vector<probe::PairMeasure> measures;
          for (const probe::Pair& pair : slot)
            measures.push_back({pair, rail, pair.a == 5 || pair.b == 5 ? 1.0 : 10.0, 20, ""});
          return measures;
        });
    // Halving, each time both halves: two runs a step until one node is left.
    fmt::print("{} nodes, one slow: {} slots of pairs, {} runs of bisection; named {}\n", nodes,
               report.slots, 2 * static_cast<int>(std::ceil(std::log2(nodes))),
               report.findings.size() == 1 ? "alone" : "not alone");
  }
}

}  // namespace

int main() {
  bench_node();
  bench_preflight();
  bench_watch();
  bench_rounds();
  bench_full();
}
