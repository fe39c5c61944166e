#include "lib/probe/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "apps/mmprobe/node_options.h"
#include "apps/mmprobe/verbs.h"
#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/base/exit_code.h"
#include "lib/base/rank_env.h"

namespace mm::mmprobe {
namespace {

struct Options {
  NodeFlags flags;
  probe::FleetOptions fleet;
  std::string directory, history, replay;
  double timeout_s = 60;
  bool json = false;
};

int report(const Options& o, std::vector<probe::NodeResult> nodes) {
  probe::FleetReport fleet{.unix_ms = system_clock().unix_ms(), .nodes = std::move(nodes)};
  compare_fleet(fleet.nodes, o.fleet);
  if (!o.history.empty()) {
    probe::append_history(o.history, fleet);
    fleet.lemon_scores = probe::lemon_scores(o.history, fleet.unix_ms);
  }
  if (o.json) {
    fmt::print("{}\n", probe::fleet_json(fleet).dump(2));
  } else {
    fmt::print("{}", probe::fleet_text(fleet));
  }
  return static_cast<int>(fleet.healthy() ? ExitCode::kDone : ExitCode::kUnhealthy);
}

// The hosts of a directory of results.
std::vector<std::string> recorded_hosts(const std::string& directory) {
  std::vector<std::string> hosts;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (entry.path().extension() == ".json") hosts.push_back(entry.path().stem().string());
  std::sort(hosts.begin(), hosts.end());
  if (hosts.empty()) throw UsageError("--replay {}: no result of a node there", directory);
  return hosts;
}

int run(const Options& o) {
  if (!o.replay.empty())
    return report(o, probe::collect_results(o.replay, recorded_hosts(o.replay), 0));
  const RankEnv ranks = read_rank_env();
  const std::string directory =
      o.directory.empty() ? ".mmprobe-fleet-" + (ranks.job_id.empty() ? "here" : ranks.job_id)
                          : o.directory;
  // One task a node probes; further ones have nothing to add.
  if (ranks.local_rank == 0) {
    probe::NodeResult own = probe::node_result(health::read_node(resolve(o.flags)));
    own.host = ranks.hosts.size() > 1 ? ranks.hosts[static_cast<size_t>(ranks.node)] : ranks.host;
    own.job = ranks.job_id;
    probe::leave_result(directory, own);
  }
  if (ranks.rank != 0) return 0;
  const int code =
      report(o, probe::collect_results(directory, ranks.hosts, o.timeout_s, ranks.job_id));
  if (o.directory.empty()) std::filesystem::remove_all(directory);
  return code;
}

}  // namespace

void add_fleet(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "fleet", "Probes every node of a Slurm allocation, compares them and names the bad ones.");
  auto o = std::make_shared<Options>();
  add_node_flags(verb, o->flags);
  const char* group = "Fleet";
  verb->add_option("--dir", o->directory,
                   "where nodes leave their results, a directory that all see; kept if it is given")
      ->group(group);
  verb->add_option("--timeout", o->timeout_s, "seconds to wait for the last node after the first")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str()
      ->group(group);
  verb->add_option("--tolerance", o->fleet.tolerance, "share below the median that is bad")
      ->check(CLI::Range(0.0, 0.99))
      ->capture_default_str()
      ->group(group);
  verb->add_option("--history", o->history, "append to this file, and score nodes by it")
      ->group(group);
  verb->add_option("--replay", o->replay, "judge the results in this directory instead")
      ->check(CLI::ExistingDirectory)
      ->group(group);
  verb->add_flag("--json", o->json, "one JSON object instead of text");
  verb->footer(
      "Examples:\n"
      "  srun --ntasks-per-node 1 mmprobe fleet --full --sku h100-8 --history /store/nodes.jsonl\n"
      "  mmprobe fleet --replay results/ --json\n"
      "Prints --exclude= for sbatch and scontrol lines for the administrator; changes nothing.\n"
      "Exit codes: 0 all good, 69 a node is bad (of rank 0; srun gives the highest).");
  verb->callback([o, &action] { action = [o] { return run(*o); }; });
}

}  // namespace mm::mmprobe
