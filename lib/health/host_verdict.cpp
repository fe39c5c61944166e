#include <fmt/format.h>

#include "lib/health/host_report.h"

namespace mm::health {
namespace {

constexpr const char* kDrainMemory = "exclude the node; drain it for a memory check";

std::string gib(uint64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
}

void missing(const std::string& where, const std::string& evidence,
             std::vector<Finding>& findings) {
  findings.push_back({.level = Level::kBad,
                      .code = "F51",
                      .where = where,
                      .what = "less than this kind of node has",
                      .evidence = evidence,
                      .action = "exclude the node; check the hardware, and the job's own limits"});
}

void judge_memory(const HostReport& host, const Expectation& expected,
                  std::vector<Finding>& findings) {
  const MemoryReport& memory = host.memory;
  if (!memory.total_bytes || !memory.available_bytes) {
    findings.push_back(not_checked("memory", "/proc/meminfo not readable"));
    return;
  }
  std::string detail =
      fmt::format("{} of {} available", gib(*memory.available_bytes), gib(*memory.total_bytes));
  if (memory.cgroup_limit_bytes)
    detail += fmt::format(", limited to {} by the control group", gib(*memory.cgroup_limit_bytes));
  if (!memory.cgroup_known) detail += ", control group limit not readable";
  const auto wanted = expected.node.memory_gib_min;
  if (wanted && *memory.total_bytes < static_cast<uint64_t>(*wanted) << 30)
    missing("memory", fmt::format("{}, expected {} GiB", detail, *wanted), findings);
  // Below the share something else fills the node; a training job started now would be the one that
  // is killed.
  if (static_cast<double>(*memory.available_bytes) <
      expected.node.memory_free_min * static_cast<double>(*memory.total_bytes)) {
    findings.push_back({.level = Level::kBad,
                        .code = "F53",
                        .where = "memory",
                        .what = "something else fills it",
                        .evidence = detail,
                        .action = "end what is left over on the node, or exclude it"});
  } else {
    findings.push_back(ok("memory", detail));
  }
}

void judge_controllers(const HostReport& host, const Expectation& expected,
                       std::vector<Finding>& findings) {
  if (host.controllers.empty()) {
    findings.push_back(
        not_checked("memory errors", "the kernel counts none here (no EDAC driver)"));
    return;
  }
  const size_t before = findings.size();
  for (const MemoryController& one : host.controllers) {
    if (one.uncorrected > 0) {
      findings.push_back({.level = Level::kBad,
                          .code = "F50",
                          .where = one.name,
                          .what = "uncorrected memory errors",
                          .evidence = fmt::format("ue_count {}", one.uncorrected),
                          .action = kDrainMemory});
    } else if (one.corrected > static_cast<uint64_t>(expected.memory.corrected_max)) {
      findings.push_back({.level = Level::kWarn,
                          .code = "F50",
                          .where = one.name,
                          .what = "many corrected memory errors",
                          .evidence = fmt::format("ce_count {}, at most {} expected", one.corrected,
                                                  expected.memory.corrected_max),
                          .action = "drain the node for a memory check when it is free"});
    }
  }
  if (findings.size() == before)
    findings.push_back(
        ok("memory errors", fmt::format("{} controllers, none", host.controllers.size())));
}

void judge_size(const HostReport& host, const Expectation& expected,
                std::vector<Finding>& findings) {
  const auto cores = expected.node.cores_min;
  if (cores && host.usable_cores < *cores)
    missing("cores", fmt::format("{} usable, expected {}", host.usable_cores, *cores), findings);
  int64_t with_memory = 0;
  for (const NumaNode& node : host.numa) {
    with_memory += node.memory_bytes > 0 ? 1 : 0;
    if (node.memory_bytes == 0 && !node.cpus.empty())
      missing("NUMA", fmt::format("node {} has processors but no memory", node.node), findings);
  }
  const auto numa = expected.node.numa_nodes;
  if (numa && with_memory != *numa)
    missing("NUMA", fmt::format("{} nodes with memory, expected {}", with_memory, *numa), findings);
  if (host.numa.empty()) findings.push_back(not_checked("NUMA", "the kernel shows no node"));
  if (!host.numa.empty() && (!numa || with_memory == *numa))
    findings.push_back(ok("NUMA", fmt::format("{} nodes", with_memory)));
}

void judge_versions(const HostReport& host, const Expectation& expected,
                    std::vector<Finding>& findings) {
  const auto wanted = expected.node.kernel_min;
  if (wanted && !version_at_least(host.kernel, *wanted)) {
    findings.push_back({.level = Level::kBad,
                        .code = "F52",
                        .where = "kernel",
                        .what = "older than expected",
                        .evidence = fmt::format("{}, expected {}", host.kernel, *wanted),
                        .action = "exclude the node; update it"});
  }
}

void judge_clock(const HostReport& host, const Expectation& expected,
                 std::vector<Finding>& findings) {
  if (!host.clock_synchronised) {
    findings.push_back(not_checked("clock", "whether it is synchronised is not known"));
  } else if (*host.clock_synchronised) {
    findings.push_back(ok("clock", "synchronised"));
  } else if (!expected.clock.required) {
    findings.push_back(not_checked("clock",
                                   "the kernel does not know it to be synchronised; times of "
                                   "several nodes may not compare"));
  } else {
    findings.push_back({.level = Level::kWarn,
                        .code = "F37",
                        .where = "clock",
                        .what = "not synchronised",
                        .evidence = "the kernel's STA_UNSYNC is set",
                        .action = "start the node's time service; training itself is not hurt"});
  }
}

}  // namespace

std::vector<Finding> judge_host(const HostReport& host, const Expectation& expected) {
  std::vector<Finding> findings;
  judge_memory(host, expected, findings);
  judge_controllers(host, expected, findings);
  judge_size(host, expected, findings);
  judge_versions(host, expected, findings);
  judge_clock(host, expected, findings);
  if (host.lustre && host.lustre->find("healthy") != 0) {
    findings.push_back({.level = Level::kBad,
                        .code = "F18",
                        .where = "Lustre",
                        .what = "its client calls itself unhealthy",
                        .evidence = *host.lustre,
                        .action = "exclude the node; check the client and its servers"});
  }
  return findings;
}

}  // namespace mm::health
