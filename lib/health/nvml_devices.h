#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace mm::health {

struct GpuDevice {
  std::string name;
  std::string uuid;
  uint64_t memory_bytes = 0;
  uint64_t memory_used_bytes = 0;
  std::string problem;  ///< what NVML said when asked; empty: all answered
};

/// `checked` is false if nothing can be said about GPUs; `problem` then says why
/// ("libnvidia-ml.so.1 not found").
struct GpuReport {
  bool checked = false;
  std::string problem;
  std::string driver;
  std::vector<GpuDevice> devices;
};

/// Loads NVML (`library`, by dlopen) and asks for each device. Reads only; needs no root.
GpuReport read_gpus(const std::string& library = "libnvidia-ml.so.1");

}  // namespace mm::health
