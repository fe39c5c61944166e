#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/base/rank_env.h"

namespace mm::probe {

/// Which nodes of an allocation take part in its collective checks: those that answered, so that a
/// lost one does not keep the others from being measured. Rank 0 writes it, the others read it.
struct FleetPlan {
  std::string job;      ///< as NodeResult::job
  std::string address;  ///< by which rank 0 is reached
  std::vector<std::string> hosts;
  std::vector<int> ranks_per_node;  ///< as `hosts`
};

Json plan_json(const FleetPlan& plan);
/// Throws DataError naming `origin`.
FleetPlan plan_from(const Json& json, const std::string& origin);

/// `ranks` without the nodes that did not answer. The address is the first host's name if it
/// resolves here to more than a loopback, else that of the interface that NCCL would take.
FleetPlan make_plan(const RankEnv& ranks, const std::vector<bool>& answered);

/// This rank's place among the plan's; nothing if its node is not in it. Ranks count by node, then
/// by local rank. `suffix` keeps the job's checks apart.
std::optional<RankEnv> seat_in(const FleetPlan& plan, const RankEnv& ranks,
                               const std::string& suffix);

/// Writes and awaits directory/plan.json of this job. `await_plan` gives nothing after `timeout_s`.
void leave_plan(const std::filesystem::path& directory, const FleetPlan& plan);
std::optional<FleetPlan> await_plan(const std::filesystem::path& directory, const std::string& job,
                                    double timeout_s);

}  // namespace mm::probe
