#pragma once
#include <cstdint>

#include "lib/health/nvml_library.h"

namespace mm::health {

// What we call of NVML, as its C interface lays it out (nvml.h of 2026).

struct NvmlMemory {
  unsigned long long total = 0, free = 0, used = 0;
};
struct NvmlMemoryV2 {
  unsigned version = 0;
  unsigned long long total = 0, reserved = 0, free = 0, used = 0;
};
struct NvmlPci {
  char bus_id_legacy[16] = {};
  unsigned domain = 0, bus = 0, device = 0, pci_device_id = 0, pci_subsystem_id = 0;
  char bus_id[32] = {};
};
struct NvmlSramStatus {
  unsigned version = 0;
  unsigned long long counts[11] = {};
  unsigned over_threshold = 0;
};
struct NvmlField {
  unsigned field = 0, scope = 0;
  long long timestamp_us = 0, latency_us = 0;
  int type = 0, result = 0;
  union {
    double d;
    unsigned u;
    unsigned long long ull;
  } value = {};
};
struct NvmlProcess {
  unsigned pid = 0;
  unsigned long long memory_bytes = 0;
  unsigned gpu_instance = 0, compute_instance = 0;
};
struct NvmlEvent {
  NvmlDevice device = nullptr;
  unsigned long long type = 0, data = 0;
  unsigned gpu_instance = 0, compute_instance = 0;
};
using NvmlEventSet = void*;

/// A versioned structure's version: its size and number.
template <typename T>
constexpr unsigned nvml_version(unsigned number) {
  return static_cast<unsigned>(sizeof(T)) | (number << 24);
}

inline constexpr int kNvmlNotSupported = 3;
inline constexpr int kNvmlLost = 15;
inline constexpr unsigned kFieldRecoveryAction = 230;
inline constexpr unsigned long long kEventXid = 0x8;

/// The functions; those that a driver lacks are null.
struct NvmlApi {
  explicit NvmlApi(const NvmlLibrary& library);
  /// Enough to count and name devices.
  bool complete() const;

  int (*init)();
  int (*shutdown)();
  const char* (*error_text)(int);
  int (*driver)(char*, unsigned);
  int (*cuda)(int*);
  int (*count)(unsigned*);
  int (*device)(unsigned, NvmlDevice*);
  int (*name)(NvmlDevice, char*, unsigned);
  int (*uuid)(NvmlDevice, char*, unsigned);
  int (*serial)(NvmlDevice, char*, unsigned);
  int (*vbios)(NvmlDevice, char*, unsigned);
  int (*pci)(NvmlDevice, NvmlPci*);
  int (*memory)(NvmlDevice, NvmlMemory*);
  int (*memory_v2)(NvmlDevice, NvmlMemoryV2*);
  int (*ecc)(NvmlDevice, int kind, int counter, unsigned long long*);
  int (*sram)(NvmlDevice, NvmlSramStatus*);
  int (*rows)(NvmlDevice, unsigned*, unsigned*, unsigned*, unsigned*);
  int (*fields)(NvmlDevice, int, NvmlField*);
  int (*clock_reasons)(NvmlDevice, unsigned long long*);
  int (*temperature)(NvmlDevice, int, unsigned*);
  int (*power)(NvmlDevice, unsigned*);
  int (*clock)(NvmlDevice, int, unsigned*);
  int (*pcie_generation)(NvmlDevice, unsigned*);
  int (*pcie_width)(NvmlDevice, unsigned*);
  int (*pcie_max_generation)(NvmlDevice, unsigned*);
  int (*pcie_max_width)(NvmlDevice, unsigned*);
  int (*pcie_replays)(NvmlDevice, unsigned*);
  int (*link_state)(NvmlDevice, unsigned, unsigned*);
  int (*link_errors)(NvmlDevice, unsigned, int, unsigned long long*);
  int (*link_remote)(NvmlDevice, unsigned, NvmlPci*);
  int (*link_remote_kind)(NvmlDevice, unsigned, unsigned*);  ///< 0 GPU, 2 switch
  int (*processes)(NvmlDevice, unsigned*, NvmlProcess*);
  int (*events_new)(NvmlEventSet*);
  int (*events_register)(NvmlDevice, unsigned long long, NvmlEventSet);
  int (*events_wait)(NvmlEventSet, NvmlEvent*, unsigned);
  int (*events_free)(NvmlEventSet);
};

}  // namespace mm::health
