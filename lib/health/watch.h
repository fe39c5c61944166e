#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/health/finding.h"
#include "lib/health/node_report.h"

namespace mm::health {

/// A counter that moved since the last sample.
struct CounterChange {
  std::string name;  ///< "ib.mlx5_0/1.symbol_error"
  uint64_t total = 0;
  uint64_t delta = 0;  ///< a counter that went back counts from zero
};

/// A state that is another one than at the last sample.
struct StateChange {
  std::string name;  ///< "net.eth0.state"
  Json was, is;
};

struct WatchSample {
  int64_t unix_ms = 0;
  double seconds = 0;  ///< since the last sample; 0 in the first
  std::vector<CounterChange> counters;
  std::vector<StateChange> states;
  std::vector<Finding> events;  ///< what the changes and new kernel lines mean
};

/// Reads counters, states and the kernel log again and again and tells what changed. The GPU driver
/// (NVML, kept open), InfiniBand and the kernel's other files are each read in a child process that
/// lasts: one that does not answer is told as an event, with how long, whenever that time has
/// doubled, and the others go on. The first sample only remembers. One thread; see GuardedReader.
class Watcher {
 public:
  /// Of `options`: root, kmsg, nvml_library, xid_table, and gpu_deadline_ms, which a reader has
  /// before it counts as hung; later samples do not wait for it.
  explicit Watcher(const NodeOptions& options, const Clock& clock = system_clock());
  ~Watcher();
  WatchSample sample();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// One line a change: "TIME net.eth0.rx_bytes +1234 (1234/s)", states, findings. Empty if nothing
/// changed.
std::string watch_lines(const WatchSample& sample);
/// {"time", "seconds", "counters": {name: delta}, "states", "events"}.
Json watch_json(const WatchSample& sample);
/// Prometheus text of all counters that ever moved: totals, by label "name", and events by code.
class PrometheusWatch {
 public:
  void add(const WatchSample& sample);
  std::string text() const;

 private:
  std::map<std::string, uint64_t> totals_, events_;
};

}  // namespace mm::health
