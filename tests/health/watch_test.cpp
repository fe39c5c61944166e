#include "lib/health/watch.h"

#include <doctest/doctest.h>

#include <fstream>

#include "tests/health/h100_node.h"

using namespace mm::health;
using mm::health::test::H100Node;

namespace {

std::string events(const WatchSample& sample) {
  std::string text;
  for (const Finding& f : sample.events) text += f.code + " " + f.where + ": " + f.what + "\n";
  return text;
}

void append_line(const H100Node& node, const std::string& text) {
  std::ofstream(node.root() / "kmsg", std::ios::app) << "4,1,1000000,-;" << text << "\n";
}

}  // namespace

TEST_CASE("watch: only what moved is told, with rates; nothing where nothing moved") {
  H100Node node;
  mm::ManualClock clock;
  Watcher watcher(node.options(), clock);
  CHECK(watch_lines(watcher.sample()).empty());
  clock.advance(1);
  CHECK(watch_lines(watcher.sample()).empty());
  node.plant("sys/class/net/eno1/statistics/rx_bytes", "100\n");
  watcher.sample();
  node.plant("sys/class/net/eno1/statistics/rx_bytes", "5100\n");
  node.plant(node.ib(2, "state"), "1: DOWN\n");
  clock.advance(2);
  const WatchSample sample = watcher.sample();
  REQUIRE(sample.counters.size() == 1);
  CHECK(sample.counters[0].name == "net.eno1.rx_bytes");
  CHECK(sample.counters[0].delta == 5000);
  CHECK(watch_lines(sample) ==
        "1970-01-01T00:00:03.000Z ib.mlx5_2/1.state \"4: ACTIVE\" -> \"1: DOWN\"\n"
        "1970-01-01T00:00:03.000Z net.eno1.rx_bytes +5000 (2500/s)\n");
  CHECK(watch_json(sample)["counters"]["net.eno1.rx_bytes"] == 5000);
  CHECK(watch_json(sample)["states"]["ib.mlx5_2/1.state"]["is"] == "1: DOWN");
}

TEST_CASE("watch: new kernel lines, rising errors and NVML events become findings") {
  H100Node node;
  mm::ManualClock clock;
  Watcher watcher(node.options(), clock);
  watcher.sample();
  append_line(node, "NVRM: Xid (PCI:0000:5b:00): 79, pid=1, GPU has fallen off the bus.");
  append_line(node, "harmless");
  node.plant("sys/devices/system/edac/mc/mc0/ue_count", "1\n");
  clock.advance(1);
  const WatchSample sample = watcher.sample();
  CHECK(events(sample) ==
        "F50 memory.mc0.uncorrected: rose\n"
        "F13 GPU 0000:5b:00: Xid 79: GPU has fallen off the bus (RESTART_BM)\n");
  clock.advance(1);
  CHECK(events(watcher.sample()).empty());
  PrometheusWatch totals;
  totals.add(sample);
  CHECK(totals.text() ==
        "# TYPE mmprobe_counter_total counter\n"
        "mmprobe_counter_total{name=\"memory.mc0.uncorrected\"} 1\n"
        "# TYPE mmprobe_events_total counter\n"
        "mmprobe_events_total{code=\"F13\"} 1\nmmprobe_events_total{code=\"F50\"} 1\n");
}

TEST_CASE(
    "watch: three losses within ten minutes are a flapping port, spread over an hour they are "
    "not") {
  const auto last_events = [](double seconds_between) {
    H100Node node;
    mm::ManualClock clock;
    node.plant(node.ib(1, "counters/link_downed"), "0\n");
    Watcher watcher(node.options(), clock);
    watcher.sample();
    std::string text;
    for (int flap = 1; flap <= 3; ++flap) {
      node.plant(node.ib(1, "counters/link_downed"), std::to_string(flap) + "\n");
      clock.advance(seconds_between);
      text = events(watcher.sample());
    }
    return text;
  };
  CHECK(last_events(60) == "F10 ib.mlx5_1/1.link_downed: port is flapping\n");
  CHECK(last_events(1200) == "");
}
