#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lib/base/clock.h"
#include "lib/base/text_escape.h"
#include "lib/health/node_report.h"

namespace mm::health {
namespace {

constexpr int kJsonSchema = 2;

std::string or_unknown(const std::string& text) {
  return text.empty() ? "unknown" : escape_text(text);
}

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json disk_json(const DiskSpace& disk) {
  return {{"path", escape_text(disk.path.string(), 4096)},
          {"total_bytes", disk.total_bytes},
          {"free_bytes", disk.free_bytes},
          {"free_inodes", disk.free_inodes},
          {"read_only", disk.read_only},
          {"hung", disk.hung},
          {"problem", disk.problem}};
}

Json host_json(const HostReport& host) {
  Json numa = Json::array();
  for (const NumaNode& node : host.numa)
    numa.push_back({{"node", node.node}, {"cpus", node.cpus}, {"memory_bytes", node.memory_bytes}});
  Json controllers = Json::array();
  for (const MemoryController& one : host.controllers)
    controllers.push_back(
        {{"name", one.name}, {"corrected", one.corrected}, {"uncorrected", one.uncorrected}});
  return {{"cpu",
           {{"model", host.cpu_model},
            {"usable_cores", host.usable_cores},
            {"features", host.cpu_features}}},
          {"memory",
           {{"total_bytes", or_null(host.memory.total_bytes)},
            {"available_bytes", or_null(host.memory.available_bytes)},
            {"cgroup_known", host.memory.cgroup_known},
            {"cgroup_limit_bytes", or_null(host.memory.cgroup_limit_bytes)}}},
          {"numa", numa},
          {"memory_controllers", controllers},
          {"clock_synchronised", or_null(host.clock_synchronised)},
          {"uptime_s", or_null(host.uptime_s)}};
}

Json ports_json(const NodeReport& report) {
  Json network = Json::array(), pci = Json::array();
  for (const NetworkPort& port : report.ports)
    network.push_back({{"name", port.name},
                       {"state", port.state},
                       {"speed_mbit_s", or_null(port.speed_mbit_s)},
                       {"mtu", or_null(port.mtu)},
                       {"carrier_downs", or_null(port.carrier_downs)}});
  for (const PciDevice& device : report.pci)
    pci.push_back({{"bdf", device.bdf},
                   {"speed", device.speed},
                   {"width", or_null(device.width)},
                   {"numa_node", or_null(device.numa_node)}});
  return {{"network", network}, {"infiniband", ib_ports_json(report.ib_ports)}, {"pci", pci}};
}

Json full_json(const FullTests& full) {
  return {{"gemm_gflop_s", or_null(full.gemm_gflop_s)},
          {"core_gflop_s", full.core_gflop_s},
          {"wrong_cores", full.wrong_cores},
          {"memory_copy_gb_s", or_null(full.memory_copy_gb_s)},
          {"memory_tested_bytes", or_null(full.memory_tested_bytes)},
          {"memory_wrong_words", full.memory_wrong_words},
          {"disk_write_mb_s", or_null(full.disk_write_mb_s)},
          {"disk_read_mb_s", or_null(full.disk_read_mb_s)},
          {"gpus", device_tests_json(full.devices)},
          {"seconds", full.seconds}};
}

}  // namespace

std::string node_text(const NodeReport& report) {
  const HostReport& host = report.host;
  std::string out =
      fmt::format("host    {}, Linux {}\n", or_unknown(host.name), or_unknown(host.kernel));
  out += fmt::format(
      "cpu     {}, {} cores usable, {}\n", or_unknown(host.cpu_model), host.usable_cores,
      host.cpu_features.empty() ? "no vector extensions of interest"
                                : fmt::format("{}", fmt::join(host.cpu_features, " ")));
  const bool fast_bf16 =
      std::any_of(host.cpu_features.begin(), host.cpu_features.end(),
                  [](const std::string& name) { return name.ends_with("_bf16"); });
  out += fmt::format("bf16    {}\n",
                     fast_bf16 ? "fast on this CPU" : "not faster than fp32 on this CPU");
  for (size_t i = 0; i < report.gpus.devices.size(); ++i) {
    const GpuDevice& gpu = report.gpus.devices[i];
    out += fmt::format("gpu {}   {}, {:.1f} GiB, {:.1f} GiB in use\n", i, or_unknown(gpu.name),
                       static_cast<double>(gpu.memory_bytes) / (1 << 30),
                       static_cast<double>(gpu.memory_used_bytes) / (1 << 30));
  }
  out += fmt::format("kind    {}\n", report.kind);
  for (const Finding& finding : report.findings) out += finding_line(finding) + "\n";
  return out +
         fmt::format("verdict {}\n", report.healthy() ? "healthy, as far as checked" : "UNHEALTHY");
}

Json node_json(const NodeReport& report) {
  Json json;
  json["schema"] = kJsonSchema;
  json["healthy"] = report.healthy();
  json["host"] = report.host.name;
  json["kernel"] = report.host.kernel;
  json["kind"] = report.kind;
  json["time"] = iso_time(report.unix_ms);
  json["seconds"] = report.seconds;
  json["findings"] = Json::array();
  for (const Finding& finding : report.findings) json["findings"].push_back(finding_json(finding));
  json.update(host_json(report.host));
  json["disks"] = Json::array();
  for (const DiskSpace& disk : report.disks) json["disks"].push_back(disk_json(disk));
  json["mounts"] = Json::array();
  for (const Mount& mount : report.mounts)
    json["mounts"].push_back({{"point", escape_text(mount.point)},
                              {"type", escape_text(mount.type)},
                              {"device", escape_text(mount.device)},
                              {"problem", mount.space.problem}});
  json.update(ports_json(report));
  json["gpus"] = gpus_json(report.gpus);
  json["versions"] = {{"nvidia_module", report.host.nvidia_module}, {"nccl", report.nccl}};
  json["kernel_log"] = {{"checked", report.kernel_log.checked},
                        {"lines", report.kernel_log.lines.size()}};
  json["full"] = report.full ? full_json(*report.full) : Json(nullptr);
  return json;
}

}  // namespace mm::health
