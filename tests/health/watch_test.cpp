#include "lib/health/watch.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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

TEST_CASE("watch: a driver that hangs is told with its time, the other counters go on") {
  H100Node node;
  mm::ManualClock clock;
  const std::string pipe = (node.root() / "hang").string();
  node.gpu(-1, "hang_at", pipe);
  node.plant("sys/class/net/eno1/statistics/rx_bytes", "0\n");
  NodeOptions options = node.options();
  options.gpu_deadline_ms = 1100;
  Watcher watcher(options, clock);
  watcher.sample();
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  std::string told;
  for (int second = 1; second <= 9; ++second) {
    node.plant("sys/class/net/eno1/statistics/rx_bytes", std::to_string(100 * second) + "\n");
    clock.advance(1);
    const double start_s = mm::system_clock().monotonic_s();
    const WatchSample sample = watcher.sample();
    // Only the first of them waits for the driver.
    if (second > 1) CHECK(mm::system_clock().monotonic_s() - start_s < 2);
    REQUIRE(sample.counters.size() == 1);
    CHECK(sample.counters[0].delta == 100);
    told += events(sample);
  }
  CHECK(told ==
        "F17 GPU driver: does not answer since 1 s\n"
        "F17 GPU driver: does not answer since 3 s\n"
        "F17 GPU driver: does not answer since 7 s\n");
  // Opened for writing, the pipe lets go; a later question finds no pipe.
  const int writer = ::open(pipe.c_str(), O_RDWR);
  std::filesystem::remove(pipe);
  std::string back;
  for (int i = 0; i < 2000 && back.empty(); ++i) {
    clock.advance(1e-6);
    back = events(watcher.sample());
  }
  ::close(writer);
  CHECK(back == "F17 GPU driver: answers again\n");
}

TEST_CASE("watch: a driver that hangs from the start holds nobody; its library that dies is told") {
  H100Node node;
  node.gpu(0, "return.nvmlDeviceGetName", "-1");
  mm::ManualClock clock;
  NodeOptions options = node.options();
  options.gpu_deadline_ms = 50;
  {
    Watcher watcher(options, clock);
    const WatchSample first = watcher.sample();
    CHECK(events(first) == "F17 GPU driver: does not answer since 0 s\n");
    CHECK(watch_json(first)["events"][0]["since"] == "1970-01-01T00:00:00.000Z");
  }
  node.gpu(0, "return.nvmlDeviceGetName", "0");
  node.gpu(-1, "die", "1");
  options = node.options();
  Watcher watcher(options, clock);
  CHECK(events(watcher.sample()) == "F17 GPU driver: cannot be read\n");
  CHECK(events(watcher.sample()) == "");  // said once
  node.gpu(-1, "die", "0");
  node.options();
  CHECK(events(watcher.sample()) == "");
}
