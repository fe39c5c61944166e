#include "lib/health/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "lib/base/text_escape.h"
#include "lib/health/nvlink_paths.h"

namespace mm::health {
namespace {

// The name by which programs know a card: its InfiniBand device, else its interface, else its
// place.
std::string nic_label(const SystemTree& tree, const std::string& bdf) {
  const std::string at = "/sys/bus/pci/devices/" + bdf;
  for (const char* folder : {"/infiniband", "/net"}) {
    const auto names = tree.names(at + folder);
    if (!names.empty()) return escape_text(names.front());
  }
  for (const std::string& device : tree.names("/sys/class/infiniband")) {
    const auto real = tree.resolved("/sys/class/infiniband/" + device + "/device");
    if (real.filename() == bdf) return escape_text(device);
  }
  return bdf;
}

// Nearest free card; a card twice only when there are fewer cards than GPUs.
const TopoDevice* nearest_nic(const Topology& topology, const PciDevice& gpu,
                              std::set<std::string>& taken) {
  const TopoDevice* best = nullptr;
  const auto key = [&](const TopoDevice& nic) {
    return std::make_pair(taken.contains(nic.label) ? 1 : 0,
                          static_cast<int>(distance(gpu, nic.pci)));
  };
  for (const TopoDevice& nic : topology.nics)
    if (best == nullptr || key(nic) < key(*best)) best = &nic;
  if (best != nullptr) taken.insert(best->label);
  return best;
}

// The part-th of `parts` equal shares of a NUMA node's processors.
std::string share_of(const Topology& topology, int numa, size_t part, size_t parts) {
  for (const NumaNode& node : topology.numa) {
    if (node.node != numa) continue;
    const std::vector<int> cpus = parse_cpus(node.cpus);
    const size_t begin = cpus.size() * part / parts, end = cpus.size() * (part + 1) / parts;
    return cpus_text({cpus.begin() + static_cast<std::ptrdiff_t>(begin),
                      cpus.begin() + static_cast<std::ptrdiff_t>(end)});
  }
  return "";
}

void place_gpus(Topology& topology) {
  std::vector<const TopoDevice*> order;
  for (const TopoDevice& gpu : topology.gpus) order.push_back(&gpu);
  // Ranks of one NUMA node and switch follow one another: rings then cross the sockets least.
  std::stable_sort(order.begin(), order.end(), [](const TopoDevice* a, const TopoDevice* b) {
    return std::make_pair(a->pci.numa_node.value_or(-1), a->pci.path) <
           std::make_pair(b->pci.numa_node.value_or(-1), b->pci.path);
  });
  std::set<std::string> taken;
  for (size_t i = 0; i < order.size(); ++i) {
    const TopoDevice& gpu = *order[i];
    RankPlace place{.local_rank = static_cast<int>(i), .gpu = gpu.label};
    place.numa = static_cast<int>(gpu.pci.numa_node.value_or(-1));
    const auto same = [&](const TopoDevice* other) {
      return other->pci.numa_node == gpu.pci.numa_node;
    };
    const auto before = std::count_if(order.begin(), order.begin() + std::ptrdiff_t(i), same);
    const auto all = std::count_if(order.begin(), order.end(), same);
    place.cpus = share_of(topology, place.numa, size_t(before), size_t(all));
    place.reason = fmt::format("{} of {} GPUs of NUMA node {}", before + 1, all, place.numa);
    if (const TopoDevice* nic = nearest_nic(topology, gpu.pci, taken)) {
      place.nic = nic->label;
      place.nic_distance = distance(gpu.pci, nic->pci);
      place.reason +=
          fmt::format("; {} is the nearest free card ({})", nic->label, word(place.nic_distance));
    }
    topology.places.push_back(std::move(place));
  }
}

void place_numa(Topology& topology) {
  for (const NumaNode& node : topology.numa) {
    if (parse_cpus(node.cpus).empty()) continue;
    topology.places.push_back({.local_rank = static_cast<int>(topology.places.size()),
                               .numa = node.node,
                               .cpus = node.cpus,
                               .reason = "no GPU: one rank a NUMA node, so that memory is near"});
  }
}

}  // namespace

const char* word(Distance distance) {
  switch (distance) {
    case Distance::kSelf:
      return "X";
    case Distance::kPix:
      return "PIX";
    case Distance::kPxb:
      return "PXB";
    case Distance::kPhb:
      return "PHB";
    case Distance::kNode:
      return "NODE";
    case Distance::kSys:
      break;
  }
  return "SYS";
}

// Paths begin with the root complex and end with the device.
Distance distance(const PciDevice& a, const PciDevice& b) {
  if (a.bdf == b.bdf) return Distance::kSelf;
  size_t common = 0;
  while (common < a.path.size() && common < b.path.size() && a.path[common] == b.path[common])
    ++common;
  const size_t below = std::max(a.path.size(), b.path.size()) - common;
  if (common >= 2 && below <= 2) return Distance::kPix;
  if (common >= 2) return Distance::kPxb;
  if (common == 1) return Distance::kPhb;
  const bool same = a.numa_node && b.numa_node && *a.numa_node >= 0 && *a.numa_node == *b.numa_node;
  return same ? Distance::kNode : Distance::kSys;
}

std::vector<int> parse_cpus(const std::string& text) {
  constexpr int kMaxCpu = 65'536;
  std::vector<int> cpus;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    int low = 0;
    auto got = std::from_chars(at, end, low);
    if (got.ec != std::errc()) return {};
    int high = low;
    if (got.ptr < end && *got.ptr == '-') got = std::from_chars(got.ptr + 1, end, high);
    if (got.ec != std::errc() || low < 0 || high < low || high > kMaxCpu) return {};
    for (int cpu = low; cpu <= high; ++cpu) cpus.push_back(cpu);
    at = got.ptr < end ? got.ptr + 1 : end;
  }
  return cpus;
}

std::string cpus_text(const std::vector<int>& cpus) {
  std::string text;
  for (size_t i = 0; i < cpus.size();) {
    size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", cpus[i]);
    if (last > i) text += fmt::format("-{}", cpus[last]);
    i = last + 1;
  }
  return text;
}

Topology read_topology(const SystemTree& tree, const GpuReport& nvml) {
  Topology topology;
  const HostReport host = read_host(tree);
  topology.host = host.name;
  topology.numa = host.numa;
  for (PciDevice& device : read_pci(tree)) {
    if (device.kind == PciDevice::Kind::kGpu) {
      // Display adapters of the board are no accelerators, but rarely have 16 lanes; NVIDIA's are
      // numbered in bus order, as CUDA_DEVICE_ORDER=PCI_BUS_ID has it.
      topology.gpus.push_back({fmt::format("GPU{}", topology.gpus.size()), std::move(device)});
    } else if (device.kind == PciDevice::Kind::kNetwork) {
      const std::string label = nic_label(tree, device.bdf);
      topology.nics.push_back({label, std::move(device)});
    }
  }
  read_nvlinks(nvml, topology);
  if (topology.gpus.empty()) {
    place_numa(topology);
  } else {
    place_gpus(topology);
  }
  return topology;
}

}  // namespace mm::health
