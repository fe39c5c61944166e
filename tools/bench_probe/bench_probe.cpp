// Prints one line a figure: what, value, unit. Arguments: none.
#include <fmt/format.h>
#include <time.h>

#include <cmath>

#include "lib/base/clock.h"
#include "lib/health/watch.h"
#include "lib/probe/pair_rounds.h"

namespace {

using namespace mm;

double processor_s() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void bench_node() {
  double best_s = 1e9;
  for (int run = 0; run < 5; ++run) best_s = std::min(best_s, health::read_node({}).seconds);
  fmt::print("node, reads only: {:.3f} s\n", best_s);
}

void bench_full() {
  health::NodeOptions options;
  options.full = true;
  fmt::print("node --full: {:.1f} s\n", health::read_node(options).seconds);
}

// Processor time of one sample, which at 1 Hz is the share of a core.
void bench_watch() {
  health::Watcher watcher({});
  watcher.sample();
  constexpr int kSamples = 200;
  const double start_s = processor_s();
  for (int i = 0; i < kSamples; ++i) watcher.sample();
  fmt::print("watch at 1 Hz: {:.3f} % of a core\n", 100 * (processor_s() - start_s) / kSamples);
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
  bench_watch();
  bench_rounds();
  bench_full();
}
