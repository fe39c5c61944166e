#pragma once
#include <string>

#include "lib/health/gpu_report.h"

namespace mm::health {

/// Loads NVML (`library`, by dlopen) and asks for each device. Reads only; needs no root; takes no
/// GPU memory. A driver that waits for lost hardware may block for minutes: see read_gpus_guarded.
GpuReport read_gpus(const std::string& library = "libnvidia-ml.so.1");

/// The same in a child process that is given up after `deadline_ms` (then `hung`).
GpuReport read_gpus_guarded(const std::string& library, int deadline_ms);

}  // namespace mm::health
