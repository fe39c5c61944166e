#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/health/expectation.h"
#include "lib/health/finding.h"
#include "lib/health/system_tree.h"

namespace mm::health {

struct MemoryReport {
  std::optional<uint64_t> total_bytes;
  std::optional<uint64_t> available_bytes;
  std::optional<uint64_t>
      cgroup_limit_bytes;  ///< nothing: no limit, or not readable (then cgroup_known is false)
  bool cgroup_known = false;
};

/// Memory of the node and limits of our control group; `root` is where /proc and /sys are read.
MemoryReport read_memory(const std::filesystem::path& root = "/");

struct NumaNode {
  int node = 0;
  std::string cpus;  ///< "0-55,112-167"
  uint64_t memory_bytes = 0;
  std::vector<int64_t> distances;  ///< to each node, 10 is local
};

struct MemoryController {
  std::string name;  ///< "mc0"
  uint64_t corrected = 0, uncorrected = 0;
};

/// What is neither disk, network nor GPU.
struct HostReport {
  std::string name, kernel, cpu_model;
  int usable_cores = 0;
  std::vector<std::string> cpu_features;
  MemoryReport memory;
  std::vector<NumaNode> numa;
  std::vector<MemoryController> controllers;  ///< empty: the kernel counts no memory errors
  std::optional<bool> clock_synchronised;
  std::optional<int64_t> boot_unix_ms;
  std::optional<double> uptime_s;
  std::string nvidia_module;          ///< version of the loaded kernel module
  std::optional<std::string> lustre;  ///< /sys/fs/lustre/health_check
};

HostReport read_host(const SystemTree& tree);
std::vector<MemoryController> read_controllers(const SystemTree& tree);

/// F53 memory, F51 size, F50 memory errors, F52 versions, F37 clock, F18 Lustre.
std::vector<Finding> judge_host(const HostReport& host, const Expectation& expected);

}  // namespace mm::health
