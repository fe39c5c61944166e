#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lib/base/html.h"
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

constexpr int kBoxWidth = 110, kBoxHeight = 34, kGap = 10;

std::string box(int x, int y, int width, const std::string& colour, const std::string& text) {
  return fmt::format(
      "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"4\" fill=\"{}\" stroke=\"#555\"/>"
      "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
      x, y, width, kBoxHeight, colour, x + width / 2, y + 22, html_escape(text));
}

const RankPlace* place_of(const Topology& topology, const std::string& gpu) {
  for (const RankPlace& place : topology.places)
    if (place.gpu == gpu) return &place;
  return nullptr;
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
      for (const TopoDevice* other : all)
        out += fmt::format(" {:>7}", word(distance(one->pci, other->pci)));
      out += fmt::format("  {:>4}  {}\n", one->pci.numa_node.value_or(-1), switch_of(one->pci));
    }
    out +=
        "PIX one switch, PXB several bridges, PHB one host bridge, NODE one NUMA node, SYS "
        "between sockets\n";
  }
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
      distances[other->label] = word(distance(one->pci, other->pci));
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
  return {{"schema", 1},
          {"host", topology.host},
          {"numa", numa},
          {"devices", list},
          {"places", places}};
}

std::string topology_svg(const Topology& topology) {
  std::map<int64_t, std::map<std::string, std::vector<const TopoDevice*>>> tree;
  for (const NumaNode& node : topology.numa) tree[node.node];
  for (const TopoDevice* one : devices(topology))
    tree[one->pci.numa_node.value_or(-1)][switch_of(one->pci)].push_back(one);
  std::string body;
  int x = kGap, height = 0;
  for (const auto& [numa, switches] : tree) {
    const int columns = std::max<int>(1, static_cast<int>(switches.size()));
    const int width = columns * (kBoxWidth + kGap) - kGap;
    body += box(x, kGap, width, "#cde", fmt::format("NUMA node {}", numa));
    int column = x;
    for (const auto& [name, members] : switches) {
      int y = kGap + kBoxHeight + kGap;
      body += box(column, y, kBoxWidth, "#eee", name);
      for (const TopoDevice* one : members) {
        y += kBoxHeight + kGap;
        const RankPlace* place = place_of(topology, one->label);
        body += box(column, y, kBoxWidth, place != nullptr ? "#bdb" : "#edb",
                    place != nullptr ? fmt::format("{} rank {}", one->label, place->local_rank)
                                     : one->label);
      }
      height = std::max(height, y + kBoxHeight);
      column += kBoxWidth + kGap;
    }
    height = std::max(height, kGap + kBoxHeight);
    x += width + 2 * kGap;
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" "
      "font-family=\"sans-serif\" "
      "font-size=\"12\">\n{}</svg>\n",
      x, height + kGap, body);
}

}  // namespace mm::health
