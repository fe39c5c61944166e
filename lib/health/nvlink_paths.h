#pragma once
#include "lib/health/topology.h"

namespace mm::health {

/// Fills `nvswitches`, `nvlinks` and `nvlink_problem` from what NVML tells of the topology's GPUs.
void read_nvlinks(const GpuReport& nvml, Topology& topology);

}  // namespace mm::health
