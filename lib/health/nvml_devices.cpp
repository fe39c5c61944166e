#include "lib/health/nvml_devices.h"

#include <fmt/format.h>

#include <array>
#include <memory>

#include "lib/health/nvml_library.h"

namespace mm::health {
namespace {

using Device = NvmlDevice;
struct Memory {
  unsigned long long total = 0, free = 0, used = 0;
};

struct Nvml {
  explicit Nvml(const NvmlLibrary& library)
      : init(library.find<int()>("nvmlInit_v2")),
        shutdown(library.find<int()>("nvmlShutdown")),
        error_text(library.find<const char*(int)>("nvmlErrorString")),
        driver(library.find<int(char*, unsigned)>("nvmlSystemGetDriverVersion")),
        count(library.find<int(unsigned*)>("nvmlDeviceGetCount_v2")),
        device(library.find<int(unsigned, Device*)>("nvmlDeviceGetHandleByIndex_v2")),
        name(library.find<int(Device, char*, unsigned)>("nvmlDeviceGetName")),
        uuid(library.find<int(Device, char*, unsigned)>("nvmlDeviceGetUUID")),
        memory(library.find<int(Device, Memory*)>("nvmlDeviceGetMemoryInfo")) {}
  bool complete() const {
    return init && shutdown && error_text && driver && count && device && name && uuid && memory;
  }
  std::string text(int code) const { return fmt::format("{} (NVML {})", error_text(code), code); }

  int (*init)();
  int (*shutdown)();
  const char* (*error_text)(int);
  int (*driver)(char*, unsigned);
  int (*count)(unsigned*);
  int (*device)(unsigned, Device*);
  int (*name)(Device, char*, unsigned);
  int (*uuid)(Device, char*, unsigned);
  int (*memory)(Device, Memory*);
};

GpuDevice read_device(const Nvml& nvml, unsigned index) {
  GpuDevice gpu;
  const auto ask = [&](int code, const char* what) {
    if (code != kNvmlSuccess && gpu.problem.empty())
      gpu.problem = fmt::format("{}: {}", what, nvml.text(code));
    return code == kNvmlSuccess;
  };
  Device device = nullptr;
  if (!ask(nvml.device(index, &device), "handle")) return gpu;
  std::array<char, 128> text{};
  if (ask(nvml.name(device, text.data(), text.size() - 1), "name")) gpu.name = text.data();
  text.fill('\0');
  if (ask(nvml.uuid(device, text.data(), text.size() - 1), "uuid")) gpu.uuid = text.data();
  Memory memory;
  if (ask(nvml.memory(device, &memory), "memory")) {
    gpu.memory_bytes = memory.total;
    gpu.memory_used_bytes = memory.used;
  }
  return gpu;
}

void read_all(const Nvml& nvml, GpuReport& report) {
  std::array<char, 128> driver{};
  if (nvml.driver(driver.data(), driver.size() - 1) == kNvmlSuccess) report.driver = driver.data();
  unsigned count = 0;
  if (const int code = nvml.count(&count); code != kNvmlSuccess) {
    report.problem = "cannot count devices: " + nvml.text(code);
    return;
  }
  report.checked = true;
  for (unsigned i = 0; i < count; ++i) report.devices.push_back(read_device(nvml, i));
}

}  // namespace

GpuReport read_gpus(const std::string& library_name) {
  GpuReport report;
  const NvmlLibrary library(library_name);
  if (!library) {
    report.problem = fmt::format("{} not found", library_name);
    return report;
  }
  const Nvml nvml(library);
  if (!nvml.complete()) {
    report.problem = fmt::format("{} lacks functions of NVML", library_name);
    return report;
  }
  if (const int code = nvml.init(); code != kNvmlSuccess) {
    report.problem = "NVML does not start: " + nvml.text(code);
    return report;
  }
  read_all(nvml, report);
  nvml.shutdown();
  return report;
}

}  // namespace mm::health
