#include "lib/probe/fleet_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/base/rank_env.h"
#include "lib/health/nccl_version.h"
#include "lib/health/nvml_devices.h"
#include "lib/probe/fleet_plan.h"

namespace mm::probe {
namespace {

// The slowest node may measure for three minutes before rank 0 has all results.
constexpr double kPlanSeconds = 300;

FleetReport judge(const FleetRunOptions& options, const std::filesystem::path& directory,
                  std::vector<NodeResult> nodes) {
  FleetReport report{.unix_ms = system_clock().unix_ms(), .nodes = std::move(nodes)};
  compare_fleet(report.nodes, options.judge);
  read_link_checks(directory, options.links.judge, report);
  charge_links(report);
  if (options.history.empty()) return report;
  append_history(options.history, report);
  report.lemon_scores = lemon_scores(options.history, report.unix_ms);
  return report;
}

BackendSupport support_of(const FleetRunOptions& options, const health::GpuReport& gpus,
                          const std::string& nccl, int local_world) {
  BackendSupport support{.nccl = gpus.checked && !nccl.empty() &&
                                 gpus.devices.size() >= static_cast<size_t>(local_world),
                         .gloo = options.has_gloo};
  if (!support.nccl && !support.gloo)
    support.why_not =
        fmt::format("{}, and no LibTorch for Gloo", gpus.devices.empty() ? "no GPU"
                                                    : nccl.empty()       ? "no NCCL"
                                                                         : "fewer GPUs than tasks");
  return support;
}

// This node's own result, and what it can run a collective with.
BackendSupport probe_own(const FleetRunOptions& options, const RankEnv& ranks,
                         const std::filesystem::path& directory) {
  NodeResult own;
  BackendSupport support;
  if (options.check_node) {
    const health::NodeReport report = health::read_node(options.node);
    own = node_result(report);
    support = support_of(options, report.gpus, report.nccl, ranks.local_world);
  } else if (options.links.collectives) {
    const auto gpus =
        health::read_gpus_guarded(options.node.nvml_library, options.node.gpu_deadline_ms);
    const std::string nccl =
        gpus.hung ? std::string() : health::nccl_version(options.node.nccl_library);
    support = support_of(options, gpus, nccl, ranks.local_world);
  }
  own.host = ranks.hosts[static_cast<size_t>(ranks.node)];
  own.job = ranks.job_id;
  leave_result(directory, own);
  return support;
}

// Returns why the ranks could not go on together.
std::string checked_links(const FleetRunOptions& options, const RankEnv& ranks,
                          const BackendSupport& support, const std::filesystem::path& directory) {
  const auto plan = await_plan(directory, ranks.job_id, options.timeout_s + kPlanSeconds);
  const auto seat = plan ? seat_in(*plan, ranks, ".links") : std::nullopt;
  if (!seat) {
    log::warn("probe", "this node came too late for the checks between nodes");
    return "";
  }
  try {
    run_link_checks(options.links, *seat, support, directory);
  } catch (const Error& error) {
    return error.what();
  } catch (const Json::exception& error) {
    return fmt::format("a rank said what is no answer: {}", error.what());
  }
  return "";
}

bool all_answered(const std::vector<NodeResult>& nodes) {
  return std::ranges::all_of(nodes, [](const NodeResult& node) { return node.answered; });
}

}  // namespace

std::optional<FleetReport> run_fleet(const FleetRunOptions& options) {
  const RankEnv ranks = read_rank_env();
  const std::filesystem::path directory =
      options.directory.empty() ? std::filesystem::path(".mmprobe-fleet-" + ranks.job_id)
                                : options.directory;
  const bool links = options.links.pairs || options.links.collectives;
  // One task a node probes; further ones have nothing to add.
  BackendSupport support;
  // What an earlier start measured between nodes is not this one's.
  if (ranks.rank == 0) forget_link_checks(directory);
  if (ranks.local_rank == 0) support = probe_own(options, ranks, directory);
  if (ranks.rank != 0) {
    // What goes wrong between nodes is rank 0's to tell; srun gives the highest code of all.
    if (links) checked_links(options, ranks, support, directory);
    return std::nullopt;
  }
  auto nodes = collect_results(directory, ranks.hosts, options.timeout_s, ranks.job_id);
  std::string failure;
  if (links) {
    std::vector<bool> answered;
    for (const NodeResult& node : nodes) answered.push_back(node.answered);
    leave_plan(directory, make_plan(ranks, answered));
    failure = checked_links(options, ranks, support, directory);
  }
  FleetReport report = judge(options, directory, std::move(nodes));
  if (!failure.empty()) report.links.push_back(health::not_checked("links", failure));
  // A node that comes late finds the plan there, and that it is not in it.
  if (options.directory.empty() && all_answered(report.nodes))
    std::filesystem::remove_all(directory);
  return report;
}

FleetReport replay_fleet(const FleetRunOptions& options, const std::filesystem::path& directory) {
  std::vector<std::string> hosts;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (entry.path().extension() == ".json") hosts.push_back(entry.path().stem().string());
  std::sort(hosts.begin(), hosts.end());
  if (hosts.empty()) throw UsageError("{}: no result of a node there", directory.string());
  return judge(options, directory, collect_results(directory, hosts, 0));
}

}  // namespace mm::probe
