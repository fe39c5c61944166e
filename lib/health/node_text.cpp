#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lib/base/text_escape.h"
#include "lib/health/node_report.h"

namespace mm::health {
namespace {

constexpr int kJsonSchema = 1;

std::string_view verdict_word(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kBad:
      return "BAD";
    case Verdict::kNotChecked:
      break;
  }
  return "not checked";
}

std::string or_unknown(const std::string& text) {
  return text.empty() ? "unknown" : escape_text(text);
}

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json disk_json(const DiskSpace& disk) {
  return {{"path", disk.path.string()},    {"total_bytes", disk.total_bytes},
          {"free_bytes", disk.free_bytes}, {"free_inodes", disk.free_inodes},
          {"read_only", disk.read_only},   {"hung", disk.hung},
          {"problem", disk.problem}};
}

Json gpus_json(const GpuReport& gpus) {
  Json devices = Json::array();
  for (const GpuDevice& gpu : gpus.devices) {
    devices.push_back({{"name", gpu.name},
                       {"uuid", gpu.uuid},
                       {"memory_bytes", gpu.memory_bytes},
                       {"memory_used_bytes", gpu.memory_used_bytes},
                       {"problem", gpu.problem}});
  }
  return {{"checked", gpus.checked},
          {"problem", gpus.problem},
          {"driver", gpus.driver},
          {"devices", devices}};
}

}  // namespace

std::string node_text(const NodeReport& report) {
  std::string out =
      fmt::format("host    {}, Linux {}\n", or_unknown(report.host), or_unknown(report.kernel));
  out += fmt::format(
      "cpu     {}, {} cores usable, {}\n", or_unknown(report.cpu_model), report.usable_cores,
      report.cpu_features.empty() ? "no vector extensions of interest"
                                  : fmt::format("{}", fmt::join(report.cpu_features, " ")));
  const bool fast_bf16 =
      std::any_of(report.cpu_features.begin(), report.cpu_features.end(),
                  [](const std::string& name) { return name.ends_with("_bf16"); });
  out += fmt::format("bf16    {}\n",
                     fast_bf16 ? "fast on this CPU" : "not faster than fp32 on this CPU");
  for (size_t i = 0; i < report.gpus.devices.size(); ++i) {
    const GpuDevice& gpu = report.gpus.devices[i];
    out += fmt::format("gpu {}   {}, {:.1f} GiB, {:.1f} GiB in use\n", i, or_unknown(gpu.name),
                       static_cast<double>(gpu.memory_bytes) / (1 << 30),
                       static_cast<double>(gpu.memory_used_bytes) / (1 << 30));
  }
  for (const NodeFinding& finding : report.findings) {
    out += fmt::format("{:<12} {}: {}\n", verdict_word(finding.verdict), finding.what,
                       escape_text(finding.detail, 1000));
  }
  return out +
         fmt::format("verdict {}\n", report.healthy() ? "healthy, as far as checked" : "UNHEALTHY");
}

Json node_json(const NodeReport& report) {
  Json json;
  json["schema"] = kJsonSchema;
  json["healthy"] = report.healthy();
  json["host"] = report.host;
  json["kernel"] = report.kernel;
  json["cpu"] = {{"model", report.cpu_model},
                 {"usable_cores", report.usable_cores},
                 {"features", report.cpu_features}};
  json["memory"] = {{"total_bytes", or_null(report.memory.total_bytes)},
                    {"available_bytes", or_null(report.memory.available_bytes)},
                    {"cgroup_known", report.memory.cgroup_known},
                    {"cgroup_limit_bytes", or_null(report.memory.cgroup_limit_bytes)}};
  json["disks"] = Json::array();
  for (const DiskSpace& disk : report.disks) json["disks"].push_back(disk_json(disk));
  json["network"] = Json::array();
  for (const NetworkPort& port : report.ports) {
    json["network"].push_back(
        {{"name", port.name}, {"state", port.state}, {"speed_mbit_s", or_null(port.speed_mbit_s)}});
  }
  json["clock_synchronised"] = or_null(report.clock_synchronised);
  json["gpus"] = gpus_json(report.gpus);
  json["findings"] = Json::array();
  for (const NodeFinding& finding : report.findings) {
    json["findings"].push_back({{"verdict", verdict_word(finding.verdict)},
                                {"what", finding.what},
                                {"detail", finding.detail}});
  }
  return json;
}

}  // namespace mm::health
