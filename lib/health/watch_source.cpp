#include "lib/health/watch_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/health/baseline.h"
#include "lib/health/nvml_session.h"

namespace mm::health {
namespace {

// What was found, as text on its way from the child.
std::string packed(const NodeReport& report) {
  Json xids = Json::array();
  for (const GpuDevice& gpu : report.gpus.devices)
    for (const unsigned xid : gpu.xid_events) xids.push_back({gpu.bus_id, xid});
  const Json json = {
      {"counters", node_counters(report)}, {"facts", node_facts(report)}, {"xids", xids}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

WatchSource::Taken WatchSource::take(int deadline_ms, double now_s, int64_t unix_ms) {
  // Other sources may have been waited for since it was asked.
  const double asked_s = now_s - reader_.waiting_s().value_or(0);
  const auto answer = reader_.take(hung_at_ ? 0 : deadline_ms);
  if (answer) return {parse_json(*answer, name_), answers(now_s)};
  if (answer.failure().kind != "hung") return {std::nullopt, fails(answer.failure().message)};
  if (hung_at_) return {std::nullopt, hangs(now_s - *hung_at_)};
  hung_at_ = asked_s;
  hung_at_unix_ms_ = unix_ms;
  return {std::nullopt, hangs(reader_.waiting_s().value_or(0))};
}

// Whenever the time has doubled, so that a dead driver does not fill the log.
std::optional<Finding> WatchSource::hangs(double hung_s) {
  if (hung_s < tell_after_s_) return std::nullopt;
  tell_after_s_ = std::max(1.0, 2 * hung_s);
  return Finding{.level = Level::kBad,
                 .code = code_,
                 .where = name_,
                 .what = fmt::format("does not answer since {:.0f} s", hung_s),
                 .evidence = "its counters stand still, the others go on",
                 .action = "exclude the node; drain it for a restart of the machine",
                 .since_unix_ms = hung_at_unix_ms_};
}

std::optional<Finding> WatchSource::answers(double now_s) {
  problem_.clear();
  if (!hung_at_) return std::nullopt;
  const double hung_s = now_s - *hung_at_;
  hung_at_.reset();
  tell_after_s_ = 0;
  return Finding{.level = Level::kWarn,
                 .code = code_,
                 .where = name_,
                 .what = "answers again",
                 .evidence = fmt::format("after {:.0f} s", hung_s),
                 .action = "none now; it counts in the node's history"};
}

std::optional<Finding> WatchSource::fails(const std::string& problem) {
  hung_at_.reset();
  if (problem_ == problem) return std::nullopt;
  problem_ = problem;
  return Finding{.level = Level::kWarn,
                 .code = code_,
                 .where = name_,
                 .what = "cannot be read",
                 .evidence = problem,
                 .action = "see the kernel log; it is tried again"};
}

// NVML starts in the child, with its first question.
std::unique_ptr<WatchSource> gpu_source(const std::string& nvml_library) {
  return std::make_unique<WatchSource>(
      "F17", "GPU driver", [nvml_library, session = std::shared_ptr<NvmlSession>()]() mutable {
        if (!session) session = std::make_shared<NvmlSession>(nvml_library);
        NodeReport report;
        report.gpus = session->read();
        return packed(report);
      });
}

std::unique_ptr<WatchSource> infiniband_source(const SystemTree& tree) {
  return std::make_unique<WatchSource>("F09", "InfiniBand", [tree] {
    NodeReport report;
    report.ib_ports = read_ib_ports(tree);
    return packed(report);
  });
}

std::unique_ptr<WatchSource> file_source(const SystemTree& tree) {
  return std::make_unique<WatchSource>("F58", "network and memory files", [tree] {
    NodeReport report;
    report.ports = read_net_ports(tree);
    report.host.controllers = read_controllers(tree);
    return packed(report);
  });
}

}  // namespace mm::health
