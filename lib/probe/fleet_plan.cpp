#include "lib/probe/fleet_plan.h"

#include <poll.h>

#include <algorithm>
#include <numeric>

#include "lib/base/clock.h"
#include "lib/base/env.h"
#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/probe/interface_choice.h"
#include "lib/probe/tcp_socket.h"

namespace mm::probe {
namespace {

constexpr uint64_t kMaxPlanBytes = uint64_t{64} << 20;
constexpr int kMaxRanksPerNode = 1024;

// Below the results, which are read by their names' ends.
std::filesystem::path plan_file(const std::filesystem::path& directory) {
  return directory / "links" / "plan.json";
}

std::string reachable_address(const RankEnv& ranks) {
  std::string address = "127.0.0.1";
  try {
    address = resolve(ranks.master_addr);
    // A machine's own name may mean its loopback; an address is what somebody asked for.
    if (address == ranks.master_addr || !address.starts_with("127.") || ranks.hosts.size() < 2)
      return address;
  } catch (const CommError&) {
    // Slurm's names need not be the network's.
  }
  try {
    return choose_interface(local_interfaces(), env::get("NCCL_SOCKET_IFNAME").value_or(""),
                            static_cast<int>(ranks.hosts.size()))
        .chosen.address;
  } catch (const UsageError&) {
    return address;
  }
}

}  // namespace

Json plan_json(const FleetPlan& plan) {
  return {{"job", plan.job},
          {"address", plan.address},
          {"hosts", plan.hosts},
          {"ranks_per_node", plan.ranks_per_node}};
}

FleetPlan plan_from(const Json& json, const std::string& origin) try {
  FleetPlan plan{.job = json.at("job"), .address = json.at("address")};
  plan.hosts = json.at("hosts").get<std::vector<std::string>>();
  plan.ranks_per_node = json.at("ranks_per_node").get<std::vector<int>>();
  const bool fits = std::all_of(plan.ranks_per_node.begin(), plan.ranks_per_node.end(),
                                [](int n) { return n >= 1 && n <= kMaxRanksPerNode; });
  if (plan.hosts.size() != plan.ranks_per_node.size() || !fits)
    throw DataError("{}: {} hosts, {} numbers of ranks; expected as many, each 1 to {}", origin,
                    plan.hosts.size(), plan.ranks_per_node.size(), kMaxRanksPerNode);
  return plan;
} catch (const Json::exception& error) {
  throw DataError("{}: no plan of a fleet: {}", origin, error.what());
}

FleetPlan make_plan(const RankEnv& ranks, const std::vector<bool>& answered) {
  FleetPlan plan{.job = ranks.job_id, .address = reachable_address(ranks)};
  for (size_t node = 0; node < ranks.hosts.size(); ++node) {
    if (!answered[node]) continue;
    plan.hosts.push_back(ranks.hosts[node]);
    plan.ranks_per_node.push_back(ranks.ranks_per_node[node]);
  }
  return plan;
}

std::optional<RankEnv> seat_in(const FleetPlan& plan, const RankEnv& ranks,
                               const std::string& suffix) {
  const auto host =
      std::find(plan.hosts.begin(), plan.hosts.end(), ranks.hosts[static_cast<size_t>(ranks.node)]);
  if (host == plan.hosts.end()) return std::nullopt;
  const auto node = host - plan.hosts.begin();
  RankEnv seat = ranks;
  seat.hosts = plan.hosts;
  seat.ranks_per_node = plan.ranks_per_node;
  seat.node = static_cast<int>(node);
  seat.host = *host;
  const auto& counts = plan.ranks_per_node;
  seat.rank = std::accumulate(counts.begin(), counts.begin() + node, 0) + ranks.local_rank;
  seat.world = std::accumulate(counts.begin(), counts.end(), 0);
  seat.master_addr = plan.address;
  seat.master_port = 0;
  seat.listen_fd = -1;
  seat.job_id = plan.job + suffix;
  return seat;
}

void leave_plan(const std::filesystem::path& directory, const FleetPlan& plan) {
  std::filesystem::create_directories(plan_file(directory).parent_path());
  write_file_atomic(plan_file(directory), plan_json(plan).dump() + "\n");
}

std::optional<FleetPlan> await_plan(const std::filesystem::path& directory, const std::string& job,
                                    double timeout_s) {
  const double until_s = system_clock().monotonic_s() + timeout_s;
  const auto file = plan_file(directory);
  while (true) {
    // Another start's plan may lie there until this one's comes.
    if (std::filesystem::exists(file)) {
      FleetPlan plan =
          plan_from(parse_json(read_file(file, kMaxPlanBytes), file.string()), file.string());
      if (plan.job == job) return plan;
    }
    if (system_clock().monotonic_s() >= until_s) return std::nullopt;
    ::poll(nullptr, 0, 50);  // a shared file system tells nobody of new files
  }
}

}  // namespace mm::probe
