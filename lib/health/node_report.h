#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/health/disk_probe.h"
#include "lib/health/expectation.h"
#include "lib/health/finding.h"
#include "lib/health/full_tests.h"
#include "lib/health/gpu_report.h"
#include "lib/health/host_report.h"
#include "lib/health/ib_ports.h"
#include "lib/health/kernel_log.h"
#include "lib/health/mounts.h"
#include "lib/health/net_ports.h"
#include "lib/health/pci_devices.h"

namespace mm::health {

struct NodeOptions {
  std::filesystem::path root =
      "/";  ///< where /proc, /sys and /etc are read; system calls are made only for "/"
  std::optional<std::filesystem::path> kmsg;  ///< nothing: /dev/kmsg, or none below another root
  std::vector<std::filesystem::path> paths;   ///< disks to probe; empty: the working directory
  std::string nvml_library = "libnvidia-ml.so.1";
  std::string nccl_library = "libnccl.so.2";
  int disk_deadline_ms = 2000;
  int gpu_deadline_ms = 3000;
  bool busy_ok = false;  ///< a job may be running on the node
  bool full = false;     ///< also measure, up to three minutes
  FullTestOptions full_tests;
  std::filesystem::path xid_table;  ///< empty: the built-in one
  std::filesystem::path baseline;   ///< compared with, unless empty
  Expectation expected;
};

/// Everything that was read; findings last.
struct NodeReport {
  int64_t unix_ms = 0;
  std::string kind;  ///< the expectation's name
  HostReport host;
  std::vector<DiskSpace> disks;
  std::vector<Mount> mounts;
  std::vector<NetworkPort> ports;  ///< without loopback
  std::vector<IbPort> ib_ports;
  std::string ib_problem;  ///< why they could not be read; empty: they were
  std::vector<PciDevice> pci;
  GpuReport gpus;
  KernelLog kernel_log;
  std::string nccl;  ///< version; empty: none found
  std::optional<FullTests> full;
  double seconds = 0;  ///< how long reading took
  std::vector<Finding> findings;
  bool healthy() const { return !any_bad(findings); }
};

/// Reads the node within 10 s, whatever hangs; changes nothing, needs no root. With `full`,
/// measures too.
NodeReport read_node(const NodeOptions& options);

/// The verdicts on what was read, worst first. What cannot be checked is neither good nor bad.
std::vector<Finding> judge_node(const NodeReport& report, const NodeOptions& options);

std::string node_text(const NodeReport& report);
/// {"schema": 2, "healthy": bool, ...}; what is not known is null.
Json node_json(const NodeReport& report);

}  // namespace mm::health
