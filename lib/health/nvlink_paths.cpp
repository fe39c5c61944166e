#include "lib/health/nvlink_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

namespace mm::health {
namespace {

// NVML writes hexadecimal digits large, sysfs small.
std::string small(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::map<std::string, std::string> labels_of(const GpuReport& nvml, Topology& topology) {
  std::map<std::string, std::string> labels;
  for (const TopoDevice& gpu : topology.gpus) labels[small(gpu.pci.bdf)] = gpu.label;
  std::set<std::string> switches;
  for (const GpuDevice& gpu : nvml.devices)
    for (const NvLink& link : gpu.links)
      if (link.to_switch && !link.remote.empty()) switches.insert(small(link.remote));
  for (const std::string& bus_id : switches) {
    labels[bus_id] = fmt::format("NVSwitch{}", topology.nvswitches.size());
    topology.nvswitches.emplace_back(labels[bus_id], bus_id);
  }
  return labels;
}

}  // namespace

void read_nvlinks(const GpuReport& nvml, Topology& topology) {
  if (topology.gpus.empty()) return;
  if (!nvml.checked) {
    topology.nvlink_problem = nvml.problem.empty() ? "NVML was not asked" : nvml.problem;
    return;
  }
  const auto labels = labels_of(nvml, topology);
  for (const GpuDevice& gpu : nvml.devices) {
    const auto own = labels.find(small(gpu.bus_id));
    if (own == labels.end()) continue;
    std::map<std::string, NvLinkPath> paths;
    for (const NvLink& link : gpu.links) {
      if (!link.active || link.remote.empty()) continue;
      const auto known = labels.find(small(link.remote));
      const std::string peer = known == labels.end() ? link.remote : known->second;
      NvLinkPath& path = paths[peer];
      path = {own->second, peer, link.to_switch, path.links + 1};
    }
    for (auto& [peer, path] : paths) topology.nvlinks.push_back(std::move(path));
  }
}

int nvlinks_between(const Topology& topology, const std::string& a, const std::string& b) {
  const auto links = [&](const std::string& gpu, const std::string& peer) {
    for (const NvLinkPath& path : topology.nvlinks)
      if (path.gpu == gpu && path.peer == peer) return path.links;
    return 0;
  };
  int count = links(a, b);
  for (const auto& [label, bus_id] : topology.nvswitches)
    count += std::min(links(a, label), links(b, label));
  return count;
}

}  // namespace mm::health
