#include "lib/health/node_report.h"

#include <fmt/format.h>

#include <utility>

#include "lib/base/clock.h"
#include "lib/base/error.h"
#include "lib/health/baseline.h"
#include "lib/health/gpu_verdict.h"
#include "lib/health/guarded_call.h"
#include "lib/health/kernel_events.h"
#include "lib/health/nccl_version.h"
#include "lib/health/nvml_devices.h"
#include "lib/health/xid_table.h"

namespace mm::health {
namespace {

template <typename T>
void append(std::vector<T>& all, std::vector<T> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

void read_gpus(const SystemTree& tree, const NodeOptions& options, NodeReport& report) {
  if (tree.live() || options.nvml_library != NodeOptions().nvml_library) {
    report.gpus = read_gpus_guarded(options.nvml_library, options.gpu_deadline_ms);
    // A driver that hangs would hang the loader of NCCL too.
    if (!report.gpus.hung) report.nccl = nccl_version(options.nccl_library);
  } else {
    report.gpus.problem = "not asked: another machine's files are read";
  }
}

void read_log(const SystemTree& tree, const NodeOptions& options, NodeReport& report) {
  if (options.kmsg) {
    report.kernel_log = read_kernel_log(*options.kmsg);
  } else if (tree.live()) {
    report.kernel_log = read_kernel_log("/dev/kmsg");
  } else {
    report.kernel_log.problem = "not asked: another machine's files are read";
  }
}

std::vector<Finding> judge_log(const NodeReport& report, const XidTable& xids) {
  if (!report.kernel_log.checked) return {not_checked("kernel log", report.kernel_log.problem)};
  std::vector<Finding> findings = judge_kernel_log(
      report.kernel_log, xids,
      {.boot_unix_ms = report.host.boot_unix_ms, .uptime_s = report.host.uptime_s});
  if (findings.empty())
    findings.push_back(
        ok("kernel log", fmt::format("{} lines, no fault", report.kernel_log.lines.size())));
  return findings;
}

std::vector<Finding> judge_infiniband(const NodeReport& report, const Expectation& expected) {
  if (report.ib_problem.empty()) return judge_ib_ports(report.ib_ports, expected);
  return {{.level = Level::kBad,
           .code = "F09",
           .where = "InfiniBand",
           .what = "a card does not answer",
           .evidence = report.ib_problem,
           .action = "exclude the node; drain it for a restart of the machine"}};
}

Finding judge_nccl(const NodeReport& report, const Expectation& expected) {
  const auto wanted = expected.versions.nccl_min;
  if (report.nccl.empty()) return not_checked("NCCL", "library not found");
  if (!wanted || version_at_least(report.nccl, *wanted)) return ok("NCCL", report.nccl);
  return {.level = Level::kBad,
          .code = "F52",
          .where = "NCCL",
          .what = "older than expected",
          .evidence = fmt::format("{}, expected {}", report.nccl, *wanted),
          .action = "use a newer container or library"};
}

// The kernel module and the library must be of one version; after an update without restart they
// are not, and nothing starts.
void judge_module(const NodeReport& report, std::vector<Finding>& findings) {
  const std::string& module = report.host.nvidia_module;
  if (module.empty() || report.gpus.driver.empty() || module == report.gpus.driver) return;
  findings.push_back({.level = Level::kBad,
                      .code = "F52",
                      .where = "GPU driver",
                      .what = "library and kernel module differ",
                      .evidence = fmt::format("library {}, module {}", report.gpus.driver, module),
                      .action = "exclude the node; restart it after the update"});
}

}  // namespace

std::vector<Finding> judge_node(const NodeReport& report, const NodeOptions& options) {
  const XidTable xids = load_xid_table(options.xid_table);
  const SystemTree tree(options.root);
  const Expectation& expected = options.expected;
  std::vector<Finding> findings = judge_host(report.host, expected);
  append(findings, judge_paths(report.disks, expected));
  append(findings, judge_mounts(report.mounts, expected));
  append(findings, judge_net_ports(report.ports, expected));
  append(findings, judge_infiniband(report, expected));
  append(findings, judge_pci(report.pci, expected));
  append(findings, judge_gpus(report.gpus, expected,
                              {.busy_ok = options.busy_ok, .xids = &xids, .tree = &tree}));
  judge_module(report, findings);
  if (report.gpus.checked) findings.push_back(judge_nccl(report, expected));
  append(findings, judge_log(report, xids));
  if (report.full) append(findings, judge_full(*report.full, expected));
  if (!options.baseline.empty())
    append(findings, compare_baseline(report, options.baseline, expected.speed.tolerance));
  sort_findings(findings);
  return findings;
}

NodeReport read_node(const NodeOptions& options) {
  const SystemTree tree(options.root);
  const double start_s = system_clock().monotonic_s();
  NodeReport report;
  report.unix_ms = system_clock().unix_ms();
  report.kind = options.expected.name;
  report.host = read_host(tree);
  report.ports = read_net_ports(tree);
  try {
    report.ib_ports = read_ib_ports_guarded(tree, 2000);
  } catch (const DeviceError& error) {
    report.ib_problem = error.what();
  }
  report.pci = read_pci(tree);
  std::vector<std::filesystem::path> paths = options.paths;
  for (const std::string& path : options.expected.storage.paths) paths.emplace_back(path);
  if (paths.empty() && tree.live()) paths.emplace_back(".");
  report.disks = probe_disks(paths, options.disk_deadline_ms);
  report.mounts = read_mounts(tree, options.disk_deadline_ms);
  read_gpus(tree, options, report);
  read_log(tree, options, report);
  if (options.full) report.full = run_full_tests(options.full_tests);
  report.seconds = system_clock().monotonic_s() - start_s;
  report.findings = judge_node(report, options);
  return report;
}

}  // namespace mm::health
