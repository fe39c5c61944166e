#include <fmt/format.h>

#include <memory>

#include "apps/mmprobe/verbs.h"
#include "lib/base/env.h"
#include "lib/base/file.h"
#include "lib/base/slurm.h"
#include "lib/health/nvml_devices.h"
#include "lib/health/topology.h"

namespace mm::mmprobe {
namespace {

constexpr int kGpuDeadlineMs = 3000;

struct Options {
  std::string root = "/", svg, slurm, nodes;
  bool json = false;
};

// Hosts of --nodes, else of the Slurm job, else all of the file.
std::vector<std::string> hosts_of(const Options& o, const std::vector<health::LeafSwitch>& leaves) {
  const std::string list = o.nodes.empty() ? env::get("SLURM_JOB_NODELIST").value_or("") : o.nodes;
  if (!list.empty()) return slurm::expand_hostlist(list);
  std::vector<std::string> hosts;
  for (const health::LeafSwitch& leaf : leaves)
    hosts.insert(hosts.end(), leaf.nodes.begin(), leaf.nodes.end());
  return hosts;
}

// NVLinks are NVML's to tell, which knows this machine only, or is a stand-in.
health::GpuReport gpus_of(const Options& o) {
  const auto library = env::get("MMPROBE_NVML");
  if (o.root == "/" || library)
    return health::read_gpus_guarded(library.value_or("libnvidia-ml.so.1"), kGpuDeadlineMs);
  health::GpuReport none;
  none.problem = "not asked: another machine's files are read";
  return none;
}

int run(const Options& o) {
  const health::Topology topology = health::read_topology(health::SystemTree(o.root), gpus_of(o));
  std::vector<health::LeafSwitch> leaves;
  std::vector<std::string> hosts;
  if (!o.slurm.empty()) {
    leaves = health::read_slurm_topology(o.slurm);
    hosts = order_hosts(hosts_of(o, leaves), leaves);
  }
  if (!o.svg.empty()) write_file_atomic(o.svg, topology_svg(topology, leaves, hosts));
  if (o.json) {
    Json json = topology_json(topology);
    json["host_order"] = hosts;
    fmt::print("{}\n", json.dump(2));
    return 0;
  }
  fmt::print("{}", topology_text(topology));
  if (hosts.empty()) return 0;
  fmt::print("{}", leaves_text(leaves, hosts));
  fmt::print("nodes in the order of their switches, so that neighbours in a ring share one:\n");
  for (const std::string& host : hosts) fmt::print("{}\n", host);
  return 0;
}

}  // namespace

void add_topo(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "topo", "Maps NUMA nodes, switches, GPUs and cards, and proposes where each rank runs.");
  auto o = std::make_shared<Options>();
  verb->add_option("--sysfs-root", o->root, "read /proc and /sys below this directory instead")
      ->check(CLI::ExistingDirectory)
      ->capture_default_str();
  verb->add_option("--slurm-topology", o->slurm,
                   "Slurm's topology.yaml or topology.conf: switches, order of nodes")
      ->check(CLI::ExistingFile);
  verb->add_option("--nodes", o->nodes, "node list to order; default: the job's, else all");
  verb->add_option("--svg", o->svg, "also draw it to this file");
  verb->add_flag("--json", o->json, "one JSON object instead of text");
  verb->footer(
      "Examples:\n"
      "  mmprobe topo --svg node.svg\n"
      "  mmprobe topo --slurm-topology /etc/slurm/topology.conf --nodes 'n[1-16]'");
  verb->callback([o, &action] { action = [o] { return run(*o); }; });
}

}  // namespace mm::mmprobe
