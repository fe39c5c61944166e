#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/health/disk_probe.h"
#include "lib/health/nvml_devices.h"

namespace mm::health {

struct NetworkPort {
  std::string name;
  std::string state;                    ///< the kernel's operstate: "up", "down", "unknown"
  std::optional<int64_t> speed_mbit_s;  ///< nothing if the driver does not say
};

struct MemoryReport {
  std::optional<uint64_t> total_bytes;
  std::optional<uint64_t> available_bytes;
  std::optional<uint64_t>
      cgroup_limit_bytes;  ///< nothing: no limit, or not readable (then cgroup_known is false)
  bool cgroup_known = false;
};

enum class Verdict { kOk, kBad, kNotChecked };

/// One judgement: "ok  clock: synchronised", "bad  disk: /store: no answer within 3000 ms", "?
/// GPUs: libnvidia-ml.so.1 not found".
struct NodeFinding {
  Verdict verdict;
  std::string what;
  std::string detail;
};

struct NodeReport {
  std::string host, kernel, cpu_model;
  int usable_cores = 0;
  std::vector<std::string> cpu_features;
  MemoryReport memory;
  std::vector<DiskSpace> disks;
  std::vector<NetworkPort> ports;  ///< without loopback
  GpuReport gpus;
  std::optional<bool> clock_synchronised;
  std::vector<NodeFinding> findings;
  bool healthy() const;  ///< no finding is bad; what was not checked does not count
};

struct NodeOptions {
  std::filesystem::path root =
      "/";  ///< where /proc, /sys and /etc are read; system calls are made only for "/"
  std::vector<std::filesystem::path> paths;  ///< disks to probe; empty: the working directory
  std::string nvml_library = "libnvidia-ml.so.1";
  int disk_deadline_ms = 3000;
  uint64_t min_free_bytes = uint64_t{1} << 30;  ///< below: bad
};

/// Memory of the node and limits of our control group; `root` as in NodeOptions.
MemoryReport read_memory(const std::filesystem::path& root = "/");

/// Reads the node within a few seconds; changes nothing, needs no root, hangs on nothing.
NodeReport read_node(const NodeOptions& options);

/// The verdicts on what was read. A node without network interface, GPU library or known clock
/// state is not bad, but not checked.
std::vector<NodeFinding> judge_node(const NodeReport& report, const NodeOptions& options);

std::string node_text(const NodeReport& report);
/// {"schema": 1, "healthy": bool, ...}; what is not known is null.
Json node_json(const NodeReport& report);

}  // namespace mm::health
