#include "lib/health/host_report.h"

#include <fmt/format.h>
#include <sys/timex.h>

#include <charconv>
#include <cstdlib>
#include <sstream>

#include "lib/base/text_escape.h"
#include "lib/base/thread_pool.h"
#include "lib/health/cpu_features.h"

namespace mm::health {
namespace {

constexpr long long kLatestSecond = 253'402'300'799;  // of the year 9999

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

std::vector<NumaNode> read_numa(const SystemTree& tree) {
  std::vector<NumaNode> nodes;
  const std::string base = "/sys/devices/system/node";
  for (const std::string& name : tree.names(base)) {
    if (!name.starts_with("node") || name.size() < 5 || name[4] < '0' || name[4] > '9') continue;
    NumaNode node{.node = std::atoi(name.c_str() + 4)};
    node.cpus = escape_text(tree.text(base + "/" + name + "/cpulist").value_or(""), 4000);
    // "Node 0 MemTotal:  1 kB"
    std::istringstream meminfo(tree.text(base + "/" + name + "/meminfo").value_or(""));
    for (std::string line; std::getline(meminfo, line);) {
      const size_t at = line.find("MemTotal:");
      if (at != std::string::npos)
        node.memory_bytes = std::strtoull(line.c_str() + at + 9, nullptr, 10) * 1024;
    }
    std::istringstream distances(tree.text(base + "/" + name + "/distance").value_or(""));
    for (int64_t distance = 0; distances >> distance;) node.distances.push_back(distance);
    nodes.push_back(std::move(node));
  }
  return nodes;
}

// "NVRM version: NVIDIA UNIX ... Module  570.124.06  Thu ...": the first word of digits and dots.
std::string module_version(const std::string& text) {
  std::istringstream words(text.substr(0, text.find('\n')));
  for (std::string word; words >> word;) {
    if (word.find('.') != std::string::npos &&
        word.find_first_not_of("0123456789.") == std::string::npos)
      return word;
  }
  return "";
}

void read_times(const SystemTree& tree, HostReport& host) {
  const std::string uptime = tree.text("/proc/uptime").value_or("");
  if (!uptime.empty()) host.uptime_s = std::strtod(uptime.c_str(), nullptr);
  const std::string stat = "\n" + tree.text("/proc/stat").value_or("");
  const size_t at = stat.find("\nbtime ");
  if (at == std::string::npos) return;
  const long long boot_s = std::strtoll(stat.c_str() + at + 7, nullptr, 10);
  if (boot_s > 0 && boot_s < kLatestSecond) host.boot_unix_ms = boot_s * 1000;
}

}  // namespace

std::vector<MemoryController> read_controllers(const SystemTree& tree) {
  std::vector<MemoryController> controllers;
  const std::string base = "/sys/devices/system/edac/mc";
  for (const std::string& name : tree.names(base)) {
    const auto corrected = tree.number(base + "/" + name + "/ce_count");
    const auto uncorrected = tree.number(base + "/" + name + "/ue_count");
    if (!corrected || !uncorrected) continue;
    controllers.push_back({escape_text(name), static_cast<uint64_t>(*corrected),
                           static_cast<uint64_t>(*uncorrected)});
  }
  return controllers;
}

HostReport read_host(const SystemTree& tree) {
  HostReport host;
  const std::string cpuinfo = tree.text("/proc/cpuinfo").value_or("");
  host.name = escape_text(tree.text("/proc/sys/kernel/hostname").value_or(""));
  host.kernel = escape_text(tree.text("/proc/sys/kernel/osrelease").value_or(""));
  host.cpu_model = escape_text(field_of(cpuinfo, "model name").value_or(""));
  host.usable_cores = tree.live() ? usable_cores() : planted_cores(cpuinfo);
  host.cpu_features = tree.live() ? feature_names(cpu_features()) : planted_features(cpuinfo);
  host.memory = read_memory(tree.at("/"));
  host.numa = read_numa(tree);
  host.controllers = read_controllers(tree);
  if (tree.live()) host.clock_synchronised = clock_synchronised();
  read_times(tree, host);
  host.nvidia_module = module_version(tree.text("/proc/driver/nvidia/version").value_or(""));
  if (const auto lustre = tree.text("/sys/fs/lustre/health_check"))
    host.lustre = escape_text(*lustre);
  return host;
}

}  // namespace mm::health
