#include <fmt/format.h>

#include "lib/base/text_escape.h"
#include "lib/health/baseline.h"

namespace mm::health {
namespace {

template <typename T>
void put(Json& json, const std::string& key, const std::optional<T>& value) {
  if (value) json[key] = *value;
}

void put_text(Json& json, const std::string& key, const std::string& value) {
  if (!value.empty()) json[key] = value;
}

void gpu_facts(const GpuReport& gpus, Json& facts) {
  if (!gpus.checked) return;
  facts["gpu.count"] = gpus.devices.size();
  put_text(facts, "version.gpu_driver", gpus.driver);
  put_text(facts, "version.cuda", gpus.cuda);
  for (size_t i = 0; i < gpus.devices.size(); ++i) {
    const GpuDevice& gpu = gpus.devices[i];
    const std::string at = fmt::format("gpu.{}.", i);
    put_text(facts, at + "name", gpu.name);
    put_text(facts, at + "serial", gpu.serial);
    put_text(facts, "version." + at + "vbios", gpu.vbios);
    if (gpu.memory_bytes > 0) facts[at + "memory_bytes"] = gpu.memory_bytes;
    put(facts, at + "pcie_width", gpu.pcie_width);
    int64_t active = 0;
    for (const NvLink& link : gpu.links) active += link.active ? 1 : 0;
    facts[at + "nvlinks"] = active;
  }
}

void port_facts(const NodeReport& report, Json& facts) {
  for (const IbPort& port : report.ib_ports) {
    const std::string at = fmt::format("ib.{}/{}.", port.device, port.port);
    facts[at + "state"] = port.state;
    facts[at + "rate"] = port.rate;
  }
  for (const NetworkPort& port : report.ports) {
    // Interfaces without a device (containers') come and go.
    if (port.is_virtual) continue;
    facts["net." + port.name + ".state"] = port.state;
    put(facts, "net." + port.name + ".speed_mbit_s", port.speed_mbit_s);
    put(facts, "net." + port.name + ".mtu", port.mtu);
  }
  for (const PciDevice& device : report.pci) {
    // GPUs and what idles lower their speed by themselves.
    if (device.kind != PciDevice::Kind::kGpu)
      put_text(facts, "pci." + device.bdf + ".speed", device.speed);
    put(facts, "pci." + device.bdf + ".width", device.width);
  }
}

}  // namespace

Json node_facts(const NodeReport& report) {
  Json facts = Json::object();
  const HostReport& host = report.host;
  facts["host.cores"] = host.usable_cores;
  put_text(facts, "host.cpu_model", host.cpu_model);
  put(facts, "host.memory_bytes", host.memory.total_bytes);
  facts["host.numa_nodes"] = host.numa.size();
  put_text(facts, "version.kernel", host.kernel);
  put_text(facts, "version.nvidia_module", host.nvidia_module);
  put_text(facts, "version.nccl", report.nccl);
  gpu_facts(report.gpus, facts);
  port_facts(report, facts);
  for (const Mount& mount : report.mounts)
    if (mount.network) facts["mount." + escape_text(mount.point)] = escape_text(mount.device);
  if (report.full) {
    put(facts, "speed.gemm_gflop_s", report.full->gemm_gflop_s);
    put(facts, "speed.memory_copy_gb_s", report.full->memory_copy_gb_s);
    put(facts, "speed.disk_write_mb_s", report.full->disk_write_mb_s);
    put(facts, "speed.disk_read_mb_s", report.full->disk_read_mb_s);
    for (size_t i = 0; i < report.full->devices.devices.size(); ++i) {
      const DeviceTest& gpu = report.full->devices.devices[i];
      const std::string at = fmt::format("speed.gpu.{}.", i);
      put(facts, at + "gemm_tflop_s", gpu.gemm_tflop_s);
      put(facts, at + "memory_copy_gb_s", gpu.memory_copy_gb_s);
      put(facts, at + "to_device_gb_s", gpu.to_device_gb_s);
      put(facts, at + "to_host_gb_s", gpu.to_host_gb_s);
    }
  }
  return facts;
}

Json node_counters(const NodeReport& report) {
  Json counters = Json::object();
  for (const IbPort& port : report.ib_ports) {
    for (const auto& [name, value] : port.counters)
      counters[fmt::format("ib.{}/{}.{}", port.device, port.port, name)] = value;
  }
  for (const NetworkPort& port : report.ports) {
    const std::string at = "net." + port.name + ".";
    put(counters, at + "carrier_downs", port.carrier_downs);
    put(counters, at + "rx_bytes", port.rx_bytes);
    put(counters, at + "tx_bytes", port.tx_bytes);
    put(counters, at + "rx_errors", port.rx_errors);
    put(counters, at + "tx_errors", port.tx_errors);
    put(counters, at + "rx_dropped", port.rx_dropped);
    put(counters, at + "tx_dropped", port.tx_dropped);
  }
  for (size_t i = 0; i < report.gpus.devices.size(); ++i) {
    const GpuDevice& gpu = report.gpus.devices[i];
    const std::string at = fmt::format("gpu.{}.", i);
    put(counters, at + "ecc_corrected", gpu.ecc_corrected);
    put(counters, at + "ecc_uncorrected", gpu.ecc_uncorrected);
    put(counters, at + "pcie_replays", gpu.pcie_replays);
    for (const NvLink& link : gpu.links) {
      const std::string link_at = fmt::format("{}link.{}.", at, link.link);
      put(counters, link_at + "replays", link.replays);
      put(counters, link_at + "recoveries", link.recoveries);
      put(counters, link_at + "crc_errors", link.crc_errors);
    }
  }
  for (const MemoryController& one : report.host.controllers) {
    counters["memory." + one.name + ".corrected"] = one.corrected;
    counters["memory." + one.name + ".uncorrected"] = one.uncorrected;
  }
  for (const PciDevice& device : report.pci) {
    put(counters, "pci." + device.bdf + ".corrected", device.corrected);
    put(counters, "pci." + device.bdf + ".nonfatal", device.nonfatal);
    put(counters, "pci." + device.bdf + ".fatal", device.fatal);
  }
  return counters;
}

}  // namespace mm::health
