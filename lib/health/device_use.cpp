#include "lib/health/device_use.h"

#include <time.h>

#include "lib/health/nvml_library.h"

namespace mm::health {
namespace {

struct Utilization {
  unsigned gpu = 0, memory = 0;  ///< percent
};

double seconds_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

struct DeviceUse::Nvml {
  explicit Nvml(const std::string& name)
      : library(name),
        shutdown(library.find<int()>("nvmlShutdown")),
        count(library.find<int(unsigned*)>("nvmlDeviceGetCount_v2")),
        device(library.find<int(unsigned, NvmlDevice*)>("nvmlDeviceGetHandleByIndex_v2")),
        use(library.find<int(NvmlDevice, Utilization*)>("nvmlDeviceGetUtilizationRates")) {
    auto* init = library.find<int()>("nvmlInit_v2");
    ready = init && shutdown && count && device && use && init() == kNvmlSuccess;
  }
  ~Nvml() {
    if (ready) shutdown();
  }

  NvmlLibrary library;
  int (*shutdown)();
  int (*count)(unsigned*);
  int (*device)(unsigned, NvmlDevice*);
  int (*use)(NvmlDevice, Utilization*);
  bool ready = false;
};

DeviceUse::DeviceUse(const std::string& nvml_library)
    : nvml_(std::make_unique<Nvml>(nvml_library)), clock_seconds_(seconds_of(CLOCK_MONOTONIC)) {
  cpu_seconds_ = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

DeviceUse::~DeviceUse() = default;

double DeviceUse::cores() {
  const double cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID), clock = seconds_of(CLOCK_MONOTONIC);
  const double passed = clock - clock_seconds_, used = cpu - cpu_seconds_;
  cpu_seconds_ = cpu, clock_seconds_ = clock;
  return passed > 0 ? used / passed : 0;
}

std::optional<double> DeviceUse::gpus() const {
  unsigned count = 0;
  if (!nvml_->ready || nvml_->count(&count) != kNvmlSuccess) return std::nullopt;
  double sum = 0;
  unsigned answered = 0;
  for (unsigned i = 0; i < count; ++i) {
    NvmlDevice device = nullptr;
    Utilization use;
    if (nvml_->device(i, &device) != kNvmlSuccess || nvml_->use(device, &use) != kNvmlSuccess)
      continue;
    sum += use.gpu / 100.0;
    ++answered;
  }
  if (answered == 0) return std::nullopt;
  return sum / answered;
}

}  // namespace mm::health
