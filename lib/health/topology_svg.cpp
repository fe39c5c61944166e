#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "lib/base/html.h"
#include "lib/health/topology.h"

namespace mm::health {
namespace {

constexpr int kBoxWidth = 110, kBoxHeight = 34, kGap = 10, kSwitchGap = 90;

struct Point {
  int x = 0, y = 0;
};

// Boxes and lines as they are drawn, and how much room they take.
class Canvas {
 public:
  /// Its upper left corner is at `at`; the label is kept for lines.
  void box(Point at, int width, const char* colour, const std::string& label,
           const std::string& text) {
    boxes_ += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"4\" fill=\"{}\" "
        "stroke=\"#555\"/><text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
        at.x, at.y, width, kBoxHeight, colour, at.x + width / 2, at.y + 22, html_escape(text));
    places_[label] = {at.x + width / 2, at.y};
    size_.x = std::max(size_.x, at.x + width + kGap);
    size_.y = std::max(size_.y, at.y + kBoxHeight + kGap);
  }
  /// From the lower edge of one box to the upper edge of the other.
  void line(const std::string& upper, const std::string& lower, int width,
            const std::string& text = "") {
    const auto a = places_.find(upper), b = places_.find(lower);
    if (a == places_.end() || b == places_.end()) return;
    const Point from{a->second.x, a->second.y + kBoxHeight}, to = b->second;
    lines_ += fmt::format(
        "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"#7a5\" "
        "stroke-width=\"{}\"><title>{}</title></line>\n",
        from.x, from.y, to.x, to.y, width, html_escape(text));
  }
  int height() const { return size_.y; }
  std::string svg() const {
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n{}{}</svg>\n",
        size_.x, size_.y, lines_, boxes_);
  }

 private:
  std::map<std::string, Point> places_;
  std::string boxes_, lines_;
  Point size_;
};

std::string pcie_switch_of(const PciDevice& device) {
  return device.path.size() >= 2 ? device.path[device.path.size() - 2] : "no switch";
}

// NUMA node -> switch -> devices.
using Tree = std::map<int64_t, std::map<std::string, std::vector<const TopoDevice*>>>;

Tree tree_of(const Topology& topology) {
  Tree tree;
  for (const NumaNode& node : topology.numa) tree[node.node];
  // Cards above GPUs, so that NVLinks leave downwards without crossing them.
  for (const auto* devices : {&topology.nics, &topology.gpus})
    for (const TopoDevice& one : *devices)
      tree[one.pci.numa_node.value_or(-1)][pcie_switch_of(one.pci)].push_back(&one);
  return tree;
}

std::string device_text(const Topology& topology, const TopoDevice& device) {
  for (const RankPlace& place : topology.places)
    if (place.gpu == device.label) return fmt::format("{} rank {}", device.label, place.local_rank);
  return device.label;
}

void draw_node(const Topology& topology, Canvas& canvas) {
  int x = kGap;
  for (const auto& [numa, switches] : tree_of(topology)) {
    const int columns = std::max<int>(1, static_cast<int>(switches.size()));
    const int width = columns * (kBoxWidth + kGap) - kGap;
    canvas.box({x, kGap}, width, "#cde", fmt::format("numa {}", numa),
               fmt::format("NUMA node {}", numa));
    int column = x;
    for (const auto& [name, members] : switches) {
      int y = kGap + kBoxHeight + kGap;
      canvas.box({column, y}, kBoxWidth, "#eee", "pcie " + name, name);
      for (const TopoDevice* one : members) {
        y += kBoxHeight + kGap;
        const std::string text = device_text(topology, *one);
        canvas.box({column, y}, kBoxWidth, text == one->label ? "#edb" : "#bdb", one->label, text);
      }
      column += kBoxWidth + kGap;
    }
    x += width + 2 * kGap;
  }
}

void draw_nvlinks(const Topology& topology, Canvas& canvas) {
  const int y = canvas.height() + kSwitchGap;
  int x = kGap;
  for (const auto& [label, bus_id] : topology.nvswitches) {
    canvas.box({x, y}, 2 * kBoxWidth, "#dcf", label, label + " " + bus_id);
    x += 2 * kBoxWidth + 2 * kGap;
  }
  for (const NvLinkPath& path : topology.nvlinks)
    canvas.line(path.gpu, path.peer, std::min(path.links, 6),
                fmt::format("{} - {}: {} NVLinks", path.gpu, path.peer, path.links));
}

// Switches of the cluster from the top down, hosts in the last row.
void draw_cluster(const std::vector<LeafSwitch>& leaves, const std::vector<std::string>& hosts,
                  Canvas& canvas) {
  size_t levels = 0;
  for (const LeafSwitch& leaf : leaves) levels = std::max(levels, leaf.above.size());
  const int top = canvas.height() + 2 * kGap, step = kBoxHeight + 4 * kGap;
  int x = kGap;
  std::map<std::string, int> drawn;
  for (const LeafSwitch& leaf : leaves) {
    const int from = x;
    for (const std::string& node : leaf.nodes) {
      if (!hosts.empty() && std::find(hosts.begin(), hosts.end(), node) == hosts.end()) continue;
      canvas.box({x, top + static_cast<int>(levels + 1) * step}, kBoxWidth, "#fff", "host " + node,
                 node);
      x += kBoxWidth + kGap;
    }
    if (x == from) continue;
    canvas.box({from, top + static_cast<int>(levels) * step}, kBoxWidth, "#dcf",
               "switch " + leaf.name, leaf.name);
    for (const std::string& node : leaf.nodes)
      canvas.line("switch " + leaf.name, "host " + node, 1, leaf.name + " - " + node);
    std::string below = leaf.name;
    for (size_t level = 0; level < leaf.above.size(); ++level) {
      const std::string& above = leaf.above[level];
      if (drawn.emplace(above, x).second)
        canvas.box({from, top + static_cast<int>(levels - 1 - level) * step}, kBoxWidth, "#dcf",
                   "switch " + above, above);
      canvas.line("switch " + above, "switch " + below, 2, above + " - " + below);
      below = above;
    }
  }
}

}  // namespace

std::string topology_svg(const Topology& topology, const std::vector<LeafSwitch>& leaves,
                         const std::vector<std::string>& hosts) {
  Canvas canvas;
  draw_node(topology, canvas);
  if (!topology.nvlinks.empty()) draw_nvlinks(topology, canvas);
  if (!leaves.empty()) draw_cluster(leaves, hosts, canvas);
  return canvas.svg();
}

}  // namespace mm::health
