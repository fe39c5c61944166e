#include "lib/health/watch.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>

#include "lib/health/baseline.h"
#include "lib/health/kernel_events.h"
#include "lib/health/nvml_session.h"

namespace mm::health {
namespace {

constexpr double kFlapWindowSeconds = 600;
constexpr size_t kFlaps = 3;

// New lines of a kernel log that stays open: /dev/kmsg, or a file that grows.
class LogTail {
 public:
  explicit LogTail(const std::filesystem::path& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ >= 0) ::lseek(fd_, 0, SEEK_END);
  }
  LogTail(const LogTail&) = delete;
  ~LogTail() {
    if (fd_ >= 0) ::close(fd_);
  }
  std::vector<std::string> lines() {
    std::vector<std::string> found;
    std::array<char, 8192> part{};
    for (int reads = 0; fd_ >= 0 && reads < 1000; ++reads) {
      const ssize_t got = ::read(fd_, part.data(), part.size());
      if (got < 0 && errno == EPIPE) continue;
      if (got <= 0) break;
      rest_.append(part.data(), static_cast<size_t>(got));
    }
    for (size_t end = 0; (end = rest_.find('\n')) != std::string::npos;) {
      if (end > 0 && rest_[0] != ' ') found.push_back(parse_kernel_line(rest_.substr(0, end)).text);
      rest_.erase(0, end + 1);
    }
    return found;
  }

 private:
  int fd_;
  std::string rest_;
};

std::string log_path(const NodeOptions& options) {
  if (options.kmsg) return options.kmsg->string();
  return options.root == "/" ? "/dev/kmsg" : "";
}

bool is_flap(const std::string& counter) {
  return counter.ends_with(".link_downed") || counter.ends_with(".carrier_downs");
}

}  // namespace

struct Watcher::State {
  State(const NodeOptions& options, const Clock& the_clock)
      : tree(options.root),
        clock(the_clock),
        nvml(options.nvml_library),
        log(log_path(options)),
        xids(load_xid_table(options.xid_table)) {}

  SystemTree tree;
  const Clock& clock;
  NvmlSession nvml;
  LogTail log;
  XidTable xids;
  bool first = true;
  double last_s = 0;
  Json counters, facts;
  std::map<std::string, std::deque<double>> flaps;  ///< times of losses by counter

  NodeReport read() {
    NodeReport report;
    report.ports = read_net_ports(tree);
    report.ib_ports = read_ib_ports(tree);
    report.host.controllers = read_controllers(tree);
    report.gpus = nvml.read();
    return report;
  }

  void compare_counters(const Json& now, WatchSample& sample) {
    for (const auto& [name, value] : now.items()) {
      const auto before = counters.find(name);
      if (before == counters.end() || !before->is_number() || *before == value) continue;
      const uint64_t was = before->get<uint64_t>(), is = value.get<uint64_t>();
      const uint64_t delta = is >= was ? is - was : is;
      if (delta == 0) continue;
      sample.counters.push_back({name, is, delta});
      note_flaps(name, delta, sample);
      for (Finding& finding : judge_growth(name, was, is))
        sample.events.push_back(std::move(finding));
    }
  }

  // Three losses within ten minutes make a port suspect; fewer are told as counters.
  void note_flaps(const std::string& name, uint64_t delta, WatchSample& sample) {
    if (!is_flap(name)) return;
    const double now_s = clock.monotonic_s();
    std::deque<double>& times = flaps[name];
    for (uint64_t i = 0; i < std::min<uint64_t>(delta, kFlaps); ++i) times.push_back(now_s);
    while (!times.empty() && times.front() < now_s - kFlapWindowSeconds) times.pop_front();
    if (times.size() < kFlaps) return;
    sample.events.push_back({.level = Level::kBad,
                             .code = "F10",
                             .where = name,
                             .what = "port is flapping",
                             .evidence = std::to_string(times.size()) + " losses within 10 min",
                             .action = "exclude the node at the next restart; check the cable"});
  }

  void compare_states(const Json& now, WatchSample& sample) {
    for (const auto& [name, value] : now.items()) {
      const auto before = facts.find(name);
      if (before == facts.end() || *before == value) continue;
      sample.states.push_back({name, *before, value});
    }
  }
};

Watcher::Watcher(const NodeOptions& options, const Clock& clock)
    : state_(std::make_unique<State>(options, clock)) {}
Watcher::~Watcher() = default;

WatchSample Watcher::sample() {
  State& s = *state_;
  WatchSample sample{.unix_ms = s.clock.unix_ms()};
  const NodeReport report = s.read();
  const Json counters = node_counters(report), facts = node_facts(report);
  if (!s.first) {
    sample.seconds = s.clock.monotonic_s() - s.last_s;
    s.compare_counters(counters, sample);
    s.compare_states(facts, sample);
    for (size_t i = 0; i < report.gpus.devices.size(); ++i) {
      const GpuDevice& gpu = report.gpus.devices[i];
      for (const unsigned xid : gpu.xid_events)
        sample.events.push_back(
            judge_xid({gpu.bus_id, static_cast<int>(xid), "event from NVML"}, s.xids));
    }
    for (const std::string& line : s.log.lines())
      if (auto finding = judge_kernel_line(line, s.xids)) sample.events.push_back(*finding);
  }
  s.first = false;
  s.last_s = s.clock.monotonic_s();
  s.counters = counters;
  s.facts = facts;
  return sample;
}

}  // namespace mm::health
