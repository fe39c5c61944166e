#include <fmt/format.h>

#include <algorithm>

#include "lib/health/node_report.h"

namespace mm::health {
namespace {

std::string gib(uint64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
}

NodeFinding judge_memory(const MemoryReport& memory) {
  if (!memory.total_bytes || !memory.available_bytes)
    return {Verdict::kNotChecked, "memory", "/proc/meminfo not readable"};
  std::string detail =
      fmt::format("{} of {} available", gib(*memory.available_bytes), gib(*memory.total_bytes));
  if (memory.cgroup_limit_bytes)
    detail += fmt::format(", limited to {} by the control group", gib(*memory.cgroup_limit_bytes));
  if (!memory.cgroup_known) detail += ", control group limit not readable";
  // Below a tenth something else fills the node; a training job started now would be the one that
  // is killed.
  const bool low = *memory.available_bytes < *memory.total_bytes / 10;
  return {low ? Verdict::kBad : Verdict::kOk, "memory", detail};
}

NodeFinding judge_disk(const DiskSpace& disk, uint64_t min_free_bytes) {
  const std::string path = disk.path.string();
  if (!disk.problem.empty())
    return {Verdict::kBad, "disk", fmt::format("{}: {}", path, disk.problem)};
  if (disk.read_only) return {Verdict::kBad, "disk", fmt::format("{}: read-only", path)};
  const std::string room =
      fmt::format("{}: {} of {} free, {} inodes free", path, gib(disk.free_bytes),
                  gib(disk.total_bytes), disk.free_inodes);
  // Some file systems have no fixed inode table and say 0 of 0.
  return {disk.free_bytes < min_free_bytes ? Verdict::kBad : Verdict::kOk, "disk", room};
}

NodeFinding judge_ports(const std::vector<NetworkPort>& ports) {
  if (ports.empty()) return {Verdict::kNotChecked, "network", "no interface but loopback"};
  const bool any_up = std::any_of(ports.begin(), ports.end(), [](const NetworkPort& p) {
    return p.state == "up" || p.state == "unknown";
  });
  std::string detail;
  for (const NetworkPort& port : ports) {
    detail += fmt::format("{}{} {}", detail.empty() ? "" : ", ", port.name, port.state);
    if (port.speed_mbit_s) detail += fmt::format(" {} Mbit/s", *port.speed_mbit_s);
  }
  return {any_up ? Verdict::kOk : Verdict::kBad, "network", detail};
}

void judge_gpus(const GpuReport& gpus, std::vector<NodeFinding>& findings) {
  if (!gpus.checked) {
    findings.push_back({Verdict::kNotChecked, "GPUs", gpus.problem + " (GPUs not checked)"});
    return;
  }
  findings.push_back(
      {Verdict::kOk, "GPUs", fmt::format("{} found, driver {}", gpus.devices.size(), gpus.driver)});
  for (size_t i = 0; i < gpus.devices.size(); ++i) {
    const GpuDevice& gpu = gpus.devices[i];
    if (!gpu.problem.empty())
      findings.push_back({Verdict::kBad, fmt::format("GPU {}", i), gpu.problem});
  }
}

}  // namespace

std::vector<NodeFinding> judge_node(const NodeReport& report, const NodeOptions& options) {
  std::vector<NodeFinding> findings;
  findings.push_back(judge_memory(report.memory));
  for (const DiskSpace& disk : report.disks)
    findings.push_back(judge_disk(disk, options.min_free_bytes));
  findings.push_back(judge_ports(report.ports));
  if (!report.clock_synchronised) {
    findings.push_back({Verdict::kNotChecked, "clock", "whether it is synchronised is not known"});
  } else if (*report.clock_synchronised) {
    findings.push_back({Verdict::kOk, "clock", "synchronised"});
  } else {
    findings.push_back(
        {Verdict::kNotChecked, "clock",
         "the kernel does not know it to be synchronised; times of several nodes may not compare"});
  }
  judge_gpus(report.gpus, findings);
  return findings;
}

}  // namespace mm::health
