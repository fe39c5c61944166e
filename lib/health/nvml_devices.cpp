#include "lib/health/nvml_devices.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <memory>

namespace mm::health {
namespace {

// The few entry points of NVML that we call, declared here because its header may be absent: NVML's
// C interface is stable under these names.
using Device = void*;
struct Memory {
  unsigned long long total = 0, free = 0, used = 0;
};
constexpr int kSuccess = 0;

struct Library {
  explicit Library(const std::string& name)
      : handle(::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {}
  Library(const Library&) = delete;
  ~Library() {
    if (handle != nullptr) ::dlclose(handle);
  }
  template <typename Function>
  Function* find(const char* symbol) const {
    return reinterpret_cast<Function*>(::dlsym(handle, symbol));
  }
  void* handle;
};

struct Nvml {
  explicit Nvml(const Library& library)
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
    if (code != kSuccess && gpu.problem.empty())
      gpu.problem = fmt::format("{}: {}", what, nvml.text(code));
    return code == kSuccess;
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
  if (nvml.driver(driver.data(), driver.size() - 1) == kSuccess) report.driver = driver.data();
  unsigned count = 0;
  if (const int code = nvml.count(&count); code != kSuccess) {
    report.problem = "cannot count devices: " + nvml.text(code);
    return;
  }
  report.checked = true;
  for (unsigned i = 0; i < count; ++i) report.devices.push_back(read_device(nvml, i));
}

}  // namespace

GpuReport read_gpus(const std::string& library_name) {
  GpuReport report;
  const Library library(library_name);
  if (library.handle == nullptr) {
    report.problem = fmt::format("{} not found", library_name);
    return report;
  }
  const Nvml nvml(library);
  if (!nvml.complete()) {
    report.problem = fmt::format("{} lacks functions of NVML", library_name);
    return report;
  }
  if (const int code = nvml.init(); code != kSuccess) {
    report.problem = "NVML does not start: " + nvml.text(code);
    return report;
  }
  read_all(nvml, report);
  nvml.shutdown();
  return report;
}

}  // namespace mm::health
