#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lib/health/topology.h"

namespace mm::health {
namespace {

std::vector<const TopoDevice*> devices(const Topology& topology) {
  std::vector<const TopoDevice*> all;
  for (const TopoDevice& gpu : topology.gpus) all.push_back(&gpu);
  for (const TopoDevice& nic : topology.nics) all.push_back(&nic);
  return all;
}

std::string dash(const std::string& text) { return text.empty() ? "-" : text; }

// The bridge right above a device, which is its switch.
std::string switch_of(const PciDevice& device) {
  return device.path.size() >= 2 ? device.path[device.path.size() - 2] : "no switch";
}

// "NV18" where NVLinks join two GPUs, as `nvidia-smi topo` has it.
std::string way(const Topology& topology, const TopoDevice& a, const TopoDevice& b) {
  const int links = a.label == b.label ? 0 : nvlinks_between(topology, a.label, b.label);
  return links > 0 ? fmt::format("NV{}", links) : word(distance(a.pci, b.pci));
}

std::string nvlinks_text(const Topology& topology) {
  if (!topology.nvlink_problem.empty())
    return fmt::format("NVLinks not known: {}\n", topology.nvlink_problem);
  std::string out;
  for (const auto& [label, bus_id] : topology.nvswitches)
    out += fmt::format("{} at {}\n", label, bus_id);
  for (const TopoDevice& gpu : topology.gpus) {
    std::string paths;
    for (const NvLinkPath& path : topology.nvlinks)
      if (path.gpu == gpu.label)
        paths += fmt::format("{}{} x{}", paths.empty() ? "" : ", ", path.peer, path.links);
    if (!paths.empty()) out += fmt::format("{} NVLinks: {}\n", gpu.label, paths);
  }
  return out;
}

}  // namespace

std::string topology_text(const Topology& topology) {
  std::string out = fmt::format("host {}\n", dash(topology.host));
  for (const NumaNode& node : topology.numa)
    out += fmt::format("NUMA node {}: processors {}, {:.1f} GiB\n", node.node, dash(node.cpus),
                       static_cast<double>(node.memory_bytes) / (1 << 30));
  const auto all = devices(topology);
  if (!all.empty()) {
    out += fmt::format("{:<10}", "");
    for (const TopoDevice* one : all) out += fmt::format(" {:>7}", one->label);
    out += "  NUMA  switch\n";
    for (const TopoDevice* one : all) {
      out += fmt::format("{:<10}", one->label);
      for (const TopoDevice* other : all) out += fmt::format(" {:>7}", way(topology, *one, *other));
      out += fmt::format("  {:>4}  {}\n", one->pci.numa_node.value_or(-1), switch_of(one->pci));
    }
    out +=
        "NV# so many NVLinks, PIX one switch, PXB several bridges, PHB one host bridge, NODE one "
        "NUMA node, SYS "
        "between sockets\n";
  }
  out += nvlinks_text(topology);
  out += fmt::format("{:<5} {:<6} {:<10} {:<5} {:<14} reason\n", "rank", "GPU", "card", "NUMA",
                     "processors");
  for (const RankPlace& place : topology.places)
    out += fmt::format("{:<5} {:<6} {:<10} {:<5} {:<14} {}\n", place.local_rank, dash(place.gpu),
                       dash(place.nic), place.numa, dash(place.cpus), place.reason);
  return out;
}

Json topology_json(const Topology& topology) {
  Json numa = Json::array(), list = Json::array(), places = Json::array();
  for (const NumaNode& node : topology.numa)
    numa.push_back({{"node", node.node},
                    {"cpus", node.cpus},
                    {"memory_bytes", node.memory_bytes},
                    {"distances", node.distances}});
  for (const TopoDevice* one : devices(topology)) {
    Json distances = Json::object();
    for (const TopoDevice* other : devices(topology))
      distances[other->label] = way(topology, *one, *other);
    list.push_back({{"label", one->label},
                    {"bdf", one->pci.bdf},
                    {"numa_node", one->pci.numa_node.value_or(-1)},
                    {"switch", switch_of(one->pci)},
                    {"distances", distances}});
  }
  for (const RankPlace& place : topology.places)
    places.push_back({{"local_rank", place.local_rank},
                      {"gpu", place.gpu},
                      {"nic", place.nic},
                      {"numa", place.numa},
                      {"cpus", place.cpus},
                      {"reason", place.reason}});
  Json switches = Json::array(), nvlinks = Json::array();
  for (const auto& [label, bus_id] : topology.nvswitches)
    switches.push_back({{"label", label}, {"bus_id", bus_id}});
  for (const NvLinkPath& path : topology.nvlinks)
    nvlinks.push_back({{"gpu", path.gpu}, {"peer", path.peer}, {"links", path.links}});
  return {{"schema", 1},
          {"host", topology.host},
          {"numa", numa},
          {"devices", list},
          {"nvswitches", switches},
          {"nvlinks", topology.nvlink_problem.empty() ? nvlinks : Json(nullptr)},
          {"places", places}};
}

std::string leaves_text(const std::vector<LeafSwitch>& leaves,
                        const std::vector<std::string>& hosts) {
  std::string out;
  for (const LeafSwitch& leaf : leaves) {
    std::vector<std::string> shown;
    for (const std::string& node : leaf.nodes)
      if (hosts.empty() || std::find(hosts.begin(), hosts.end(), node) != hosts.end())
        shown.push_back(node);
    if (shown.empty()) continue;
    out += fmt::format("switch {}{}{}: {}\n", leaf.name, leaf.above.empty() ? "" : " below ",
                       fmt::join(leaf.above, ", "), fmt::join(shown, " "));
  }
  return out;
}

}  // namespace mm::health
