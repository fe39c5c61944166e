#pragma once
#include <vector>

#include "lib/health/expectation.h"
#include "lib/health/finding.h"
#include "lib/health/gpu_report.h"
#include "lib/health/system_tree.h"
#include "lib/health/xid_table.h"

namespace mm::health {

struct GpuVerdictOptions {
  bool busy_ok = false;              ///< a job may be running: memory in use is not judged
  const XidTable* xids = nullptr;    ///< for events that NVML delivered; null: not judged
  const SystemTree* tree = nullptr;  ///< names processes; null: only numbers
};

/// F11 PCIe, F12 NVLink, F13 recovery action, F15 ECC and row remap, F16 slow clocks, F17 lost, F46
/// memory in use, F51 count and kind, F52 versions.
std::vector<Finding> judge_gpus(const GpuReport& gpus, const Expectation& expected,
                                const GpuVerdictOptions& options);

/// NVML's word for a recovery action (field 230): "none", "reset the GPU", ...
const char* recovery_word(unsigned action);
/// The clock reasons that slow a GPU against its will: "HW thermal slowdown"; empty: none.
std::string slowdown_text(uint64_t clock_reasons);

}  // namespace mm::health
