#include "lib/health/node_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/timex.h>

#include <algorithm>
#include <charconv>

#include "lib/base/thread_pool.h"
#include "lib/health/cpu_features.h"
#include "lib/health/system_tree.h"

namespace mm::health {
namespace {

// "16384 kB" of /proc/meminfo.
std::optional<uint64_t> kib_field(const std::string& meminfo, std::string_view key) {
  const auto text = field_of(meminfo, key);
  uint64_t kib = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), kib).ec != std::errc())
    return std::nullopt;
  return kib * 1024;
}

// The limit of one group; "max" and huge numbers mean none.
void take_limit(const SystemTree& tree, const std::string& path, MemoryReport& memory) {
  constexpr int64_t kNoLimit = int64_t{1} << 60;
  if (!tree.text(path)) return;
  memory.cgroup_known = true;
  const auto limit = tree.number(path);
  if (!limit || *limit <= 0 || *limit >= kNoLimit) return;
  const uint64_t bytes = static_cast<uint64_t>(*limit);
  memory.cgroup_limit_bytes = std::min(memory.cgroup_limit_bytes.value_or(bytes), bytes);
}

// Our group and all above it, each of which may limit: "0::/a/b" in version 2, "5:memory:/a/b" in
// version 1.
void read_cgroup_limit(const SystemTree& tree, MemoryReport& memory) {
  const bool version_2 = tree.text("/sys/fs/cgroup/cgroup.controllers").has_value();
  const std::string base = version_2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
  const std::string file = version_2 ? "/memory.max" : "/memory.limit_in_bytes";
  const std::string groups = "\n" + tree.text("/proc/self/cgroup").value_or("");
  const std::string_view key = version_2 ? "0::" : ":memory:";
  const size_t at = groups.find(key);
  std::string group = at == std::string::npos ? "" : groups.substr(at + key.size());
  group.resize(std::min(group.find('\n'), group.size()));
  // The topmost group of version 2 has no limit and no file that says so.
  memory.cgroup_known = version_2;
  while (!group.empty() && group != "/") {
    take_limit(tree, base + group + file, memory);
    group.resize(std::min(group.rfind('/'), group.size() - 1));
  }
  take_limit(tree, base + file, memory);
}

MemoryReport read_memory(const SystemTree& tree) {
  MemoryReport memory;
  const std::string meminfo = tree.text("/proc/meminfo").value_or("");
  memory.total_bytes = kib_field(meminfo, "MemTotal");
  memory.available_bytes = kib_field(meminfo, "MemAvailable");
  read_cgroup_limit(tree, memory);
  return memory;
}

std::vector<NetworkPort> read_ports(const SystemTree& tree) {
  std::vector<NetworkPort> ports;
  for (const std::string& name : tree.names("/sys/class/net")) {
    const std::string base = "/sys/class/net/" + name;
    const auto state = tree.text(base + "/operstate");
    if (name == "lo" || !state) continue;
    auto speed = tree.number(base + "/speed");
    if (speed && *speed <= 0) speed.reset();
    ports.push_back({name, *state, speed});
  }
  return ports;
}

std::vector<std::string> planted_features(const std::string& cpuinfo) {
  const std::string flags = " " + field_of(cpuinfo, "flags").value_or("") + " ";
  const auto has = [&](const char* flag) {
    return flags.find(fmt::format(" {} ", flag)) != std::string::npos;
  };
  CpuFeatures features;
  features.avx2 = has("avx2");
  features.avx512 = has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl");
  features.avx512_bf16 = has("avx512_bf16");
  features.amx_bf16 = has("amx_bf16");
  return feature_names(features);
}

int planted_cores(const std::string& cpuinfo) {
  int cores = 0;
  for (size_t at = cpuinfo.find("processor"); at != std::string::npos;
       at = cpuinfo.find("processor", at + 1)) {
    cores += at == 0 || cpuinfo[at - 1] == '\n' ? 1 : 0;
  }
  return cores;
}

// Reads only (modes = 0). The kernel's STA_UNSYNC is set until a time service disciplines the
// clock.
std::optional<bool> clock_synchronised() {
  struct timex clock {};
  const int state = ::adjtimex(&clock);
  if (state < 0) return std::nullopt;
  return state != TIME_ERROR && (clock.status & STA_UNSYNC) == 0;
}

}  // namespace

NodeReport read_node(const NodeOptions& options) {
  const SystemTree tree(options.root);
  NodeReport report;
  const std::string cpuinfo = tree.text("/proc/cpuinfo").value_or("");
  report.host = tree.text("/proc/sys/kernel/hostname").value_or("");
  report.kernel = tree.text("/proc/sys/kernel/osrelease").value_or("");
  report.cpu_model = field_of(cpuinfo, "model name").value_or("");
  report.usable_cores = tree.live() ? usable_cores() : planted_cores(cpuinfo);
  report.cpu_features = tree.live() ? feature_names(cpu_features()) : planted_features(cpuinfo);
  report.memory = read_memory(tree);
  report.ports = read_ports(tree);
  if (tree.live()) report.clock_synchronised = clock_synchronised();
  std::vector<std::filesystem::path> paths = options.paths;
  if (paths.empty() && tree.live()) paths.emplace_back(".");
  for (const auto& path : paths) report.disks.push_back(probe_disk(path, options.disk_deadline_ms));
  if (tree.live() || options.nvml_library != NodeOptions().nvml_library) {
    report.gpus = read_gpus(options.nvml_library);
  } else {
    report.gpus.problem = "not asked: another machine's files are read";
  }
  report.findings = judge_node(report, options);
  return report;
}

bool NodeReport::healthy() const {
  return std::none_of(findings.begin(), findings.end(),
                      [](const NodeFinding& f) { return f.verdict == Verdict::kBad; });
}

MemoryReport read_memory(const std::filesystem::path& root) {
  return read_memory(SystemTree(root));
}

}  // namespace mm::health
