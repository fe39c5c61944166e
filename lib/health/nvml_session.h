#pragma once
#include <memory>
#include <string>

#include "lib/health/gpu_report.h"

namespace mm::health {

/// NVML, started once and asked many times; shut down with the object. Xids that arrive between two
/// reads are in the second one. Blocks if the driver does. One thread.
class NvmlSession {
 public:
  explicit NvmlSession(const std::string& library);
  ~NvmlSession();
  /// `checked` is false, and `problem` says why, if NVML is not there.
  GpuReport read();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace mm::health
