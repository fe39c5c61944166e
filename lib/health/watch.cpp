#include "lib/health/watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <memory>
#include <utility>

#include "lib/health/baseline.h"
#include "lib/health/kernel_events.h"
#include "lib/health/watch_source.h"

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
        deadline_ms(options.gpu_deadline_ms),
        log(log_path(options)),
        xids(load_xid_table(options.xid_table)) {
    sources.push_back(gpu_source(options.nvml_library));
    sources.push_back(infiniband_source(tree));
    sources.push_back(file_source(tree));
  }

  SystemTree tree;
  const Clock& clock;
  int deadline_ms;
  LogTail log;
  XidTable xids;
  std::vector<std::unique_ptr<WatchSource>> sources;
  bool first = true;
  double last_s = 0;
  Json counters = Json::object(), facts = Json::object();
  std::map<std::string, std::deque<double>> flaps;  ///< times of losses by counter

  void read(WatchSample& sample) {
    for (const auto& source : sources) source->ask();
    for (const auto& source : sources) {
      const auto got = source->take(deadline_ms, clock.monotonic_s(), sample.unix_ms);
      if (got.event) sample.events.push_back(*got.event);
      if (got.read) take(*got.read, sample);
    }
  }

  void take(const Json& read, WatchSample& sample) {
    if (!first) {
      compare_counters(read.at("counters"), sample);
      compare_states(read.at("facts"), sample);
      for (const Json& xid : read.at("xids"))
        sample.events.push_back(judge_xid(
            {xid.at(0).get<std::string>(), xid.at(1).get<int>(), "event from NVML"}, xids));
    }
    // What hangs now is compared with its last answer when it comes back.
    counters.update(read.at("counters"));
    facts.update(read.at("facts"));
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
  if (!s.first) sample.seconds = s.clock.monotonic_s() - s.last_s;
  s.read(sample);
  if (!s.first) {
    for (const std::string& line : s.log.lines())
      if (auto finding = judge_kernel_line(line, s.xids)) sample.events.push_back(*finding);
  }
  s.first = false;
  s.last_s = s.clock.monotonic_s();
  return sample;
}

}  // namespace mm::health
