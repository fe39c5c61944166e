#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "apps/mmprobe/engine_library.h"
#include "apps/mmprobe/node_options.h"
#include "apps/mmprobe/some_bytes.h"
#include "apps/mmprobe/verbs.h"
#include "lib/base/exit_code.h"
#include "lib/probe/fleet_run.h"

namespace mm::mmprobe {
namespace {

struct Options {
  NodeFlags flags;
  probe::FleetRunOptions fleet;
  std::vector<std::string> checks = {"node", "pairs", "nccl"};
  std::string replay;
  bool json = false;
};

probe::FleetRunOptions resolved(const Options& o) {
  probe::FleetRunOptions fleet = o.fleet;
  fleet.node = resolve(o.flags);
  fleet.has_gloo = std::filesystem::exists(engine_path());
  const auto chosen = [&](const char* check) {
    return std::find(o.checks.begin(), o.checks.end(), check) != o.checks.end();
  };
  fleet.check_node = chosen("node");
  fleet.links.pairs = chosen("pairs");
  fleet.links.collectives = chosen("nccl");
  fleet.links.kind = o.flags.kind;
  fleet.links.program = std::filesystem::read_symlink("/proc/self/exe").string();
  const auto& network = fleet.node.expected.network;
  if (!fleet.links.judge.expected_gb_s) fleet.links.judge.expected_gb_s = network.pair_gb_s;
  fleet.links.judge.expected_latency_us = network.pair_latency_us;
  return fleet;
}

int run(const Options& o) {
  const probe::FleetRunOptions options = resolved(o);
  const auto report =
      o.replay.empty() ? run_fleet(options) : std::optional(replay_fleet(options, o.replay));
  if (!report) return 0;
  if (o.json) {
    fmt::print("{}\n", probe::fleet_json(*report).dump(2));
  } else {
    fmt::print("{}", probe::fleet_text(*report));
  }
  return static_cast<int>(report->healthy() ? ExitCode::kDone : ExitCode::kUnhealthy);
}

void add_fleet_options(CLI::App* verb, Options& o) {
  const char* group = "Fleet";
  verb->add_option("--checks", o.checks, "of each node, pairs of nodes, a collective among all")
      ->delimiter(',')
      ->check(CLI::IsMember({"node", "pairs", "nccl"}))
      ->capture_default_str()
      ->group(group);
  verb->add_option("--dir", o.fleet.directory,
                   "where nodes leave their results, a directory that all see; kept if it is given")
      ->group(group);
  verb->add_option("--timeout", o.fleet.timeout_s,
                   "seconds to wait for the last node after the first")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str()
      ->group(group);
  verb->add_option("--tolerance", o.fleet.judge.tolerance, "share below the median that is bad")
      ->check(CLI::Range(0.0, 0.99))
      ->capture_default_str()
      ->group(group);
  verb->add_option("--history", o.fleet.history, "append to this file, and score nodes by it")
      ->group(group);
  verb->add_option("--replay", o.replay, "judge the results in this directory instead")
      ->check(CLI::ExistingDirectory)
      ->group(group);
}

void add_link_options(CLI::App* verb, probe::LinkCheckOptions& links) {
  const char* group = "Between nodes";
  verb->add_option("--rails", links.rails,
                   "interfaces to measure pairs by; each as NCCL_SOCKET_IFNAME")
      ->group(group);
  verb->add_option("--pair-bytes", links.transport.bytes, "sent each way by each pair")
      ->transform(CLI::AsSizeValue(false))
      ->check(some_bytes())
      ->capture_default_str()
      ->group(group);
  verb->add_option("--pair-timeout", links.transport.timeout_s,
                   "seconds for a pair to meet, and without progress, until it is cut")
      ->check(CLI::Range(0.1, 600.0))
      ->capture_default_str()
      ->group(group);
  verb->add_option("--pair-tolerance", links.judge.tolerance,
                   "share of the better quarter below which a pair is bad")
      ->check(CLI::Range(0.0, 0.99))
      ->capture_default_str()
      ->group(group);
  verb->add_option("--pair-latency-factor", links.judge.latency_factor,
                   "a latency above so many times the others' (and 50 us more) is bad")
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str()
      ->group(group);
  verb->add_option("--expect-pair", links.judge.expected_gb_s, "GB/s of a pair")
      ->check(CLI::PositiveNumber)
      ->group(group);
  verb->add_option("--backend", links.backend, "of the collective; auto: NCCL, else Gloo")
      ->check(CLI::IsMember({"auto", "nccl", "gloo"}))
      ->capture_default_str()
      ->group(group);
  verb->add_option("--nccl-bytes", links.bytes, "of the collective")
      ->transform(CLI::AsSizeValue(false))
      ->check(some_bytes())
      ->capture_default_str()
      ->group(group);
  verb->add_option("--expect-nccl", links.expected_gb_s, "bus bandwidth between all ranks, GB/s")
      ->check(CLI::PositiveNumber)
      ->group(group);
  verb->add_option("--nccl-timeout", links.collective_timeout_s, "seconds for a collective to end")
      ->check(CLI::Range(1.0, 3600.0))
      ->capture_default_str()
      ->group(group);
}

}  // namespace

void add_fleet(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "fleet", "Probes every node of a Slurm allocation, compares them and names the bad ones.");
  auto o = std::make_shared<Options>();
  add_node_flags(verb, o->flags);
  add_fleet_options(verb, *o);
  add_link_options(verb, o->fleet.links);
  verb->add_flag("--json", o->json, "one JSON object instead of text");
  verb->footer(
      "Examples:\n"
      "  srun --ntasks-per-node 8 mmprobe fleet --full --sku h100-8 --history /store/nodes.jsonl\n"
      "  srun --ntasks-per-node 1 mmprobe fleet --checks node,pairs --rails ib0 ib1\n"
      "  mmprobe fleet --replay results/ --json\n"
      "Prints --exclude= for sbatch and scontrol lines for the administrator; changes nothing.\n"
      "Exit codes: 0 all good, 69 a node or a link is bad (of rank 0; srun gives the highest).");
  verb->callback([o, &action] { action = [o] { return run(*o); }; });
}

}  // namespace mm::mmprobe
