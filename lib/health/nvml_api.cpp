#include "lib/health/nvml_api.h"

#include <type_traits>

namespace mm::health {
namespace {

template <typename Function>
void load(const NvmlLibrary& library, Function*& function, const char* symbol) {
  function = library.find<Function>(symbol);
}

}  // namespace

NvmlApi::NvmlApi(const NvmlLibrary& library) {
  load(library, init, "nvmlInit_v2");
  load(library, shutdown, "nvmlShutdown");
  load(library, error_text, "nvmlErrorString");
  load(library, driver, "nvmlSystemGetDriverVersion");
  load(library, cuda, "nvmlSystemGetCudaDriverVersion_v2");
  load(library, count, "nvmlDeviceGetCount_v2");
  load(library, device, "nvmlDeviceGetHandleByIndex_v2");
  load(library, name, "nvmlDeviceGetName");
  load(library, uuid, "nvmlDeviceGetUUID");
  load(library, serial, "nvmlDeviceGetSerial");
  load(library, vbios, "nvmlDeviceGetVbiosVersion");
  load(library, pci, "nvmlDeviceGetPciInfo_v3");
  load(library, memory, "nvmlDeviceGetMemoryInfo");
  load(library, memory_v2, "nvmlDeviceGetMemoryInfo_v2");
  load(library, ecc, "nvmlDeviceGetTotalEccErrors");
  load(library, sram, "nvmlDeviceGetSramEccErrorStatus");
  load(library, rows, "nvmlDeviceGetRemappedRows");
  load(library, fields, "nvmlDeviceGetFieldValues");
  load(library, clock_reasons, "nvmlDeviceGetCurrentClocksEventReasons");
  // The name before 2023.
  if (!clock_reasons) load(library, clock_reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
  load(library, temperature, "nvmlDeviceGetTemperature");
  load(library, power, "nvmlDeviceGetPowerUsage");
  load(library, clock, "nvmlDeviceGetClockInfo");
  load(library, pcie_generation, "nvmlDeviceGetCurrPcieLinkGeneration");
  load(library, pcie_width, "nvmlDeviceGetCurrPcieLinkWidth");
  load(library, pcie_max_generation, "nvmlDeviceGetMaxPcieLinkGeneration");
  load(library, pcie_max_width, "nvmlDeviceGetMaxPcieLinkWidth");
  load(library, pcie_replays, "nvmlDeviceGetPcieReplayCounter");
  load(library, link_state, "nvmlDeviceGetNvLinkState");
  load(library, link_errors, "nvmlDeviceGetNvLinkErrorCounter");
  load(library, link_remote, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
  load(library, link_remote_kind, "nvmlDeviceGetNvLinkRemoteDeviceType");
  load(library, processes, "nvmlDeviceGetComputeRunningProcesses_v3");
  load(library, events_new, "nvmlEventSetCreate");
  load(library, events_register, "nvmlDeviceRegisterEvents");
  load(library, events_wait, "nvmlEventSetWait_v2");
  load(library, events_free, "nvmlEventSetFree");
}

bool NvmlApi::complete() const {
  return init && shutdown && error_text && driver && count && device && name && uuid && memory;
}

}  // namespace mm::health
