#include "lib/base/error.h"
#include "lib/health/gpu_report.h"

namespace mm::health {
namespace {

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

template <typename T>
void take(const Json& json, const char* key, std::optional<T>& value) {
  if (!json.at(key).is_null()) value = json.at(key).get<T>();
}

template <typename T>
void take(const Json& json, const char* key, T& value) {
  value = json.at(key).get<T>();
}

// Every plain field once, for both directions: visit(key, member).
template <typename Device, typename Visit>
void visit_fields(Device& gpu, Visit&& visit) {
  visit("name", gpu.name);
  visit("uuid", gpu.uuid);
  visit("serial", gpu.serial);
  visit("bus_id", gpu.bus_id);
  visit("vbios", gpu.vbios);
  visit("memory_bytes", gpu.memory_bytes);
  visit("memory_used_bytes", gpu.memory_used_bytes);
  visit("ecc_corrected", gpu.ecc_corrected);
  visit("ecc_uncorrected", gpu.ecc_uncorrected);
  visit("ecc_uncorrected_total", gpu.ecc_uncorrected_total);
  visit("sram_over_threshold", gpu.sram_over_threshold);
  visit("recovery_action", gpu.recovery_action);
  visit("clock_reasons", gpu.clock_reasons);
  visit("temperature_c", gpu.temperature_c);
  visit("power_mw", gpu.power_mw);
  visit("sm_clock_mhz", gpu.sm_clock_mhz);
  visit("pcie_generation", gpu.pcie_generation);
  visit("pcie_width", gpu.pcie_width);
  visit("pcie_max_generation", gpu.pcie_max_generation);
  visit("pcie_max_width", gpu.pcie_max_width);
  visit("pcie_replays", gpu.pcie_replays);
  visit("xid_events", gpu.xid_events);
  visit("problem_code", gpu.problem_code);
  visit("problem", gpu.problem);
}

struct Writer {
  Json& json;
  template <typename T>
  void operator()(const char* key, const std::optional<T>& value) {
    json[key] = or_null(value);
  }
  template <typename T>
  void operator()(const char* key, const T& value) {
    json[key] = value;
  }
};

Json device_json(const GpuDevice& gpu) {
  Json json;
  visit_fields(gpu, Writer{json});
  json["rows"] = gpu.rows ? Json{{"corrected", gpu.rows->corrected},
                                 {"uncorrected", gpu.rows->uncorrected},
                                 {"pending", gpu.rows->pending},
                                 {"failed", gpu.rows->failed}}
                          : Json(nullptr);
  json["links"] = Json::array();
  for (const NvLink& link : gpu.links) {
    json["links"].push_back({{"link", link.link},
                             {"active", link.active},
                             {"remote", link.remote},
                             {"to_switch", link.to_switch},
                             {"replays", or_null(link.replays)},
                             {"recoveries", or_null(link.recoveries)},
                             {"crc_errors", or_null(link.crc_errors)}});
  }
  json["processes"] = Json::array();
  for (const GpuProcess& process : gpu.processes)
    json["processes"].push_back({{"pid", process.pid}, {"memory_bytes", process.memory_bytes}});
  return json;
}

GpuDevice device_from(const Json& json) {
  GpuDevice gpu;
  visit_fields(gpu, [&](const char* key, auto& value) { take(json, key, value); });
  if (const Json& rows = json.at("rows"); !rows.is_null())
    gpu.rows = RemappedRows{rows.at("corrected"), rows.at("uncorrected"), rows.at("pending"),
                            rows.at("failed")};
  for (const Json& one : json.at("links")) {
    NvLink link{.link = one.at("link"),
                .active = one.at("active"),
                .remote = one.at("remote"),
                .to_switch = one.at("to_switch")};
    take(one, "replays", link.replays);
    take(one, "recoveries", link.recoveries);
    take(one, "crc_errors", link.crc_errors);
    gpu.links.push_back(link);
  }
  for (const Json& one : json.at("processes"))
    gpu.processes.push_back({one.at("pid"), one.at("memory_bytes")});
  return gpu;
}

}  // namespace

Json gpus_json(const GpuReport& report) {
  Json devices = Json::array();
  for (const GpuDevice& gpu : report.devices) devices.push_back(device_json(gpu));
  return {{"checked", report.checked}, {"hung", report.hung}, {"problem", report.problem},
          {"driver", report.driver},   {"cuda", report.cuda}, {"devices", devices}};
}

GpuReport gpus_from_json(const Json& json) try {
  GpuReport report;
  take(json, "checked", report.checked);
  take(json, "hung", report.hung);
  take(json, "problem", report.problem);
  take(json, "driver", report.driver);
  take(json, "cuda", report.cuda);
  for (const Json& one : json.at("devices")) report.devices.push_back(device_from(one));
  return report;
} catch (const Json::exception& error) {
  throw DataError("GPU report: {}", error.what());
}

}  // namespace mm::health
