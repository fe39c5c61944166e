#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/json.h"

namespace mm::health {

struct NvLink {
  int link = 0;
  bool active = false;
  std::string remote;  ///< bus id of what it leads to; empty: not known
  bool to_switch = false;
  std::optional<uint64_t> replays, recoveries, crc_errors;  ///< since the driver loaded
};

struct GpuProcess {
  unsigned pid = 0;
  uint64_t memory_bytes = 0;  ///< 0 if the driver does not tell
};

/// Rows of memory that were replaced (Ampere and later).
struct RemappedRows {
  unsigned corrected = 0, uncorrected = 0;
  bool pending = false;  ///< takes effect at the next reset
  bool failed = false;
};

/// One GPU as NVML tells it. Nothing: this GPU or driver does not tell (NOT_SUPPORTED).
struct GpuDevice {
  std::string name, uuid, serial, bus_id, vbios;
  uint64_t memory_bytes = 0;
  uint64_t memory_used_bytes = 0;
  std::optional<uint64_t> ecc_corrected, ecc_uncorrected;  ///< since the driver loaded
  std::optional<uint64_t> ecc_uncorrected_total;           ///< of its life
  std::optional<bool> sram_over_threshold;
  std::optional<RemappedRows> rows;
  std::optional<unsigned> recovery_action;  ///< 0 none; NVML field 230
  std::optional<uint64_t> clock_reasons;    ///< bits; why clocks are lower than they could be
  std::optional<unsigned> temperature_c, power_mw, sm_clock_mhz;
  std::optional<unsigned> pcie_generation, pcie_width, pcie_max_generation, pcie_max_width;
  std::optional<unsigned> pcie_replays;
  std::vector<NvLink> links;
  std::vector<GpuProcess> processes;
  std::vector<unsigned> xid_events;  ///< seen by NVML while we read
  int problem_code = 0;              ///< NVML's return code that is a fault
  std::string problem;               ///< what NVML said when asked; empty: all answered
};

/// `checked` is false if nothing can be said about GPUs; `problem` then says why
/// ("libnvidia-ml.so.1 not found").
struct GpuReport {
  bool checked = false;
  bool hung = false;  ///< NVML did not answer in time
  std::string problem;
  std::string driver;
  std::string cuda;  ///< newest version that the driver serves, "12.8"
  std::vector<GpuDevice> devices;
};

Json gpus_json(const GpuReport& report);
/// The inverse; throws DataError for anything else.
GpuReport gpus_from_json(const Json& json);

}  // namespace mm::health
