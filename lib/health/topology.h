#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/json.h"
#include "lib/health/gpu_report.h"
#include "lib/health/host_report.h"
#include "lib/health/pci_devices.h"
#include "lib/health/system_tree.h"

namespace mm::health {

/// How far two devices of a node are apart, nearest first; the words of `nvidia-smi topo`.
enum class Distance {
  kSelf,  ///< "X"
  kPix,   ///< one PCIe switch between
  kPxb,   ///< several bridges, one root port
  kPhb,   ///< one host bridge (root complex)
  kNode,  ///< host bridges of one NUMA node
  kSys,   ///< other NUMA nodes
};
const char* word(Distance distance);

struct TopoDevice {
  std::string label;  ///< "GPU0", "mlx5_2", "nvme1"
  PciDevice pci;
};

/// Where one local rank should run.
struct RankPlace {
  int local_rank = 0;
  std::string gpu;  ///< label; empty on a node without GPUs
  std::string nic;  ///< label; empty without cards
  Distance nic_distance = Distance::kSys;
  int numa = -1;     ///< -1: not known
  std::string cpus;  ///< "0-11"
  std::string reason;
};

/// Active NVLinks from one GPU to one peer.
struct NvLinkPath {
  std::string gpu, peer;  ///< labels; a switch is "NVSwitch0", ..., what is unknown its bus id
  bool to_switch = false;
  int links = 0;
};

struct Topology {
  std::string host;
  std::vector<NumaNode> numa;
  std::vector<TopoDevice> gpus, nics;
  std::vector<std::pair<std::string, std::string>> nvswitches;  ///< label, bus id; by bus id
  std::vector<NvLinkPath> nvlinks;                              ///< by GPU, then peer
  std::string nvlink_problem;  ///< why NVLinks are not known; empty: they are, or there is no GPU
  std::vector<RankPlace> places;
};

/// Reads GPUs, cards and NUMA nodes from sysfs, and places one rank a GPU (a NUMA node, without
/// GPUs): nearest card that is not yet taken, an equal share of the NUMA node's processors. NVLinks
/// are those that `nvml` tells of the same GPUs.
Topology read_topology(const SystemTree& tree, const GpuReport& nvml = {});

Distance distance(const PciDevice& a, const PciDevice& b);
/// How many links join two GPUs: those between them, or the fewer of both to switches that they
/// share; 0: none.
int nvlinks_between(const Topology& topology, const std::string& a, const std::string& b);

/// "0-3,8" -> 0 1 2 3 8; nothing for broken text. And back.
std::vector<int> parse_cpus(const std::string& text);
std::string cpus_text(const std::vector<int>& cpus);

/// A leaf switch (or block) of the cluster and its nodes.
struct LeafSwitch {
  std::string name;
  std::vector<std::string> above;  ///< switches over it, nearest first
  std::vector<std::string> nodes;
};
/// Leaves of a Slurm topology.conf (tree, block or ring), in its order. Throws DataError naming the
/// line.
std::vector<LeafSwitch> parse_slurm_topology(const std::string& text, const std::string& origin);
/// The same of a topology.yaml: of the topology that is the cluster's default, else the first one
/// with nodes.
std::vector<LeafSwitch> parse_slurm_topology_yaml(const std::string& text,
                                                  const std::string& origin);
/// By the file's name: .yaml, .yml, or topology.conf. Throws DataError; IoError if it cannot be
/// read.
std::vector<LeafSwitch> read_slurm_topology(const std::filesystem::path& file);
/// `hosts` ordered so that those of one leaf follow one another, as do leaves under one switch;
/// hosts that no leaf names come last. Within a leaf: as given.
std::vector<std::string> order_hosts(const std::vector<std::string>& hosts,
                                     const std::vector<LeafSwitch>& leaves);

std::string topology_text(const Topology& topology);
Json topology_json(const Topology& topology);
/// Leaves with the switches above them and the hosts (all, if `hosts` is empty) below.
std::string leaves_text(const std::vector<LeafSwitch>& leaves,
                        const std::vector<std::string>& hosts);
/// One SVG file without outside references: NUMA nodes, PCIe switches below them, devices and
/// ranks, NVSwitches with a line for each bundle of links; below them, if there are `leaves`, the
/// cluster's switches and hosts.
std::string topology_svg(const Topology& topology, const std::vector<LeafSwitch>& leaves = {},
                         const std::vector<std::string>& hosts = {});

}  // namespace mm::health
