#pragma once
#include <memory>
#include <optional>
#include <string>

namespace mm::health {

/// How busy this process keeps the processor, and this node's GPUs are. One object a process;
/// not thread-safe.
class DeviceUse {
 public:
  explicit DeviceUse(const std::string& nvml_library = "libnvidia-ml.so.1");
  ~DeviceUse();

  /// Processor time over time since the last call (at first: since the start), all threads
  /// together: 2.0 is two cores.
  double cores();
  /// Mean share (0 to 1) of the last sample period in which a kernel ran, over this node's GPUs
  /// (nvmlDeviceGetUtilizationRates); nothing without NVML or a GPU that answers.
  std::optional<double> gpus() const;

 private:
  struct Nvml;
  std::unique_ptr<Nvml> nvml_;
  double cpu_seconds_ = 0, clock_seconds_ = 0;  ///< at the last call
};

}  // namespace mm::health
