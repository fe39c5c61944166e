// NVML's functions by their names. `return.FUNCTION` in a scenario makes that function return the
// code; a negative one makes it never return. `hang_at` names a file: where that is a named pipe,
// every function waits until somebody opens it for writing.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "lib/health/nvml_api.h"
#include "tests/health/fake_nvml/scenario.h"

using namespace mm::health;

namespace {

fake_nvml::Scenario scenario;
unsigned events_left = 0;

unsigned index_of(NvmlDevice device) {
  return static_cast<unsigned>(reinterpret_cast<uintptr_t>(device)) - 1;
}

int code_of(unsigned gpu, const char* function) {
  const int code = static_cast<int>(scenario.gpu_number(gpu, std::string("return.") + function, 0));
  while (code < 0) ::pause();
  // A named pipe without a writer holds whoever opens it.
  if (const std::string pipe = scenario.text("hang_at", ""); !pipe.empty())
    ::close(::open(pipe.c_str(), O_RDONLY));
  return code;
}

int put_text(NvmlDevice device, const char* function, const char* key, char* text, unsigned size) {
  const unsigned gpu = index_of(device);
  const int code = code_of(gpu, function);
  if (code == 0)
    std::snprintf(text, size, "%s",
                  scenario.gpu_text(gpu, key, std::string(key) + std::to_string(gpu)).c_str());
  return code;
}

template <typename T>
int put(NvmlDevice device, const char* function, const std::string& key, T* value, T fallback) {
  const unsigned gpu = index_of(device);
  const int code = code_of(gpu, function);
  if (code == 0) *value = static_cast<T>(scenario.gpu_number(gpu, key, fallback));
  return code;
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  scenario = fake_nvml::Scenario::load();
  events_left = scenario.number("event.count", 0);
  if (scenario.number("die", 0) != 0) ::_exit(3);
  return static_cast<int>(scenario.number("return.nvmlInit_v2", 0));
}
int nvmlShutdown() { return 0; }
const char* nvmlErrorString(int code) {
  return code == 15 ? "GPU is lost" : code == 16 ? "GPU requires reset" : "Unknown Error";
}
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::snprintf(text, size, "%s", scenario.text("driver", "570.124.06").c_str());
  return 0;
}
int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = static_cast<int>(scenario.number("cuda", 12080));
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(scenario.number("count", 2));
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, NvmlDevice* device) {
  *device = reinterpret_cast<NvmlDevice>(static_cast<uintptr_t>(index + 1));
  return code_of(index, "nvmlDeviceGetHandleByIndex_v2");
}
int nvmlDeviceGetName(NvmlDevice device, char* text, unsigned size) {
  return put_text(device, "nvmlDeviceGetName", "name", text, size);
}
int nvmlDeviceGetUUID(NvmlDevice device, char* text, unsigned size) {
  return put_text(device, "nvmlDeviceGetUUID", "uuid", text, size);
}
int nvmlDeviceGetSerial(NvmlDevice device, char* text, unsigned size) {
  return put_text(device, "nvmlDeviceGetSerial", "serial", text, size);
}
int nvmlDeviceGetVbiosVersion(NvmlDevice device, char* text, unsigned size) {
  return put_text(device, "nvmlDeviceGetVbiosVersion", "vbios", text, size);
}
int nvmlDeviceGetPciInfo_v3(NvmlDevice device, NvmlPci* pci) {
  return put_text(device, "nvmlDeviceGetPciInfo_v3", "bus_id", pci->bus_id, sizeof(pci->bus_id));
}
int nvmlDeviceGetMemoryInfo(NvmlDevice device, NvmlMemory* memory) {
  memory->total = scenario.gpu_number(index_of(device), "memory_mib", 81559) << 20;
  return put(device, "nvmlDeviceGetMemoryInfo", "memory_used", &memory->used, 0ULL);
}
int nvmlDeviceGetMemoryInfo_v2(NvmlDevice device, NvmlMemoryV2* memory) {
  memory->total = scenario.gpu_number(index_of(device), "memory_mib", 81559) << 20;
  return put(device, "nvmlDeviceGetMemoryInfo_v2", "memory_used", &memory->used, 0ULL);
}
int nvmlDeviceGetTotalEccErrors(NvmlDevice device, int kind, int counter, unsigned long long* n) {
  const std::string key =
      std::string(kind == 0 ? "ecc_corrected" : "ecc_uncorrected") + (counter == 0 ? "" : "_total");
  return put(device, "nvmlDeviceGetTotalEccErrors", key, n, 0ULL);
}
int nvmlDeviceGetSramEccErrorStatus(NvmlDevice device, NvmlSramStatus* status) {
  return put(device, "nvmlDeviceGetSramEccErrorStatus", "sram_over_threshold",
             &status->over_threshold, 0U);
}
int nvmlDeviceGetRemappedRows(NvmlDevice device, unsigned* corrected, unsigned* uncorrected,
                              unsigned* pending, unsigned* failed) {
  put(device, "nvmlDeviceGetRemappedRows", "rows_corrected", corrected, 0U);
  put(device, "nvmlDeviceGetRemappedRows", "rows_uncorrected", uncorrected, 0U);
  put(device, "nvmlDeviceGetRemappedRows", "rows_pending", pending, 0U);
  return put(device, "nvmlDeviceGetRemappedRows", "rows_failed", failed, 0U);
}
int nvmlDeviceGetFieldValues(NvmlDevice device, int count, NvmlField* fields) {
  for (int i = 0; i < count; ++i) {
    fields[i].result = fields[i].field == kFieldRecoveryAction ? 0 : kNvmlNotSupported;
    fields[i].value.u =
        static_cast<unsigned>(scenario.gpu_number(index_of(device), "recovery_action", 0));
  }
  return code_of(index_of(device), "nvmlDeviceGetFieldValues");
}
int nvmlDeviceGetCurrentClocksEventReasons(NvmlDevice device, unsigned long long* reasons) {
  return put(device, "nvmlDeviceGetCurrentClocksEventReasons", "clock_reasons", reasons, 1ULL);
}
int nvmlDeviceGetTemperature(NvmlDevice device, int, unsigned* value) {
  return put(device, "nvmlDeviceGetTemperature", "temperature", value, 35U);
}
int nvmlDeviceGetPowerUsage(NvmlDevice device, unsigned* value) {
  return put(device, "nvmlDeviceGetPowerUsage", "power_mw", value, 70'000U);
}
int nvmlDeviceGetClockInfo(NvmlDevice device, int, unsigned* value) {
  return put(device, "nvmlDeviceGetClockInfo", "sm_clock", value, 345U);
}
int nvmlDeviceGetCurrPcieLinkGeneration(NvmlDevice device, unsigned* value) {
  return put(device, "nvmlDeviceGetCurrPcieLinkGeneration", "pcie_generation", value, 5U);
}
int nvmlDeviceGetCurrPcieLinkWidth(NvmlDevice device, unsigned* value) {
  return put(device, "nvmlDeviceGetCurrPcieLinkWidth", "pcie_width", value, 16U);
}
int nvmlDeviceGetMaxPcieLinkGeneration(NvmlDevice device, unsigned* value) {
  return put(device, "nvmlDeviceGetMaxPcieLinkGeneration", "pcie_max_generation", value, 5U);
}
int nvmlDeviceGetMaxPcieLinkWidth(NvmlDevice device, unsigned* value) {
  return put(device, "nvmlDeviceGetMaxPcieLinkWidth", "pcie_max_width", value, 16U);
}
int nvmlDeviceGetPcieReplayCounter(NvmlDevice device, unsigned* value) {
  return put(device, "nvmlDeviceGetPcieReplayCounter", "pcie_replays", value, 0U);
}
int nvmlDeviceGetNvLinkState(NvmlDevice device, unsigned link, unsigned* active) {
  if (link >= scenario.gpu_number(index_of(device), "links", 0)) return kNvmlNotSupported;
  return put(device, "nvmlDeviceGetNvLinkState", "link." + std::to_string(link) + ".active", active,
             1U);
}
int nvmlDeviceGetNvLinkErrorCounter(NvmlDevice device, unsigned link, int counter,
                                    unsigned long long* value) {
  const char* names[] = {".replays", ".recoveries", ".crc_errors", ".crc_data", ".ecc_data"};
  return put(device, "nvmlDeviceGetNvLinkErrorCounter",
             "link." + std::to_string(link) + names[counter], value, 0ULL);
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(NvmlDevice device, unsigned link, NvmlPci* pci) {
  const std::string key = "link." + std::to_string(link) + ".remote";
  if (scenario.gpu_text(index_of(device), key, "").empty()) return kNvmlNotSupported;
  return put_text(device, "nvmlDeviceGetNvLinkRemotePciInfo_v2", key.c_str(), pci->bus_id,
                  sizeof(pci->bus_id));
}
int nvmlDeviceGetNvLinkRemoteDeviceType(NvmlDevice device, unsigned link, unsigned* kind) {
  return put(device, "nvmlDeviceGetNvLinkRemoteDeviceType",
             "link." + std::to_string(link) + ".remote_kind", kind, 255U);
}
int nvmlDeviceGetComputeRunningProcesses_v3(NvmlDevice device, unsigned* count,
                                            NvmlProcess* processes) {
  const auto pid = static_cast<unsigned>(scenario.gpu_number(index_of(device), "process", 0));
  *count = pid == 0 ? 0 : 1;
  if (pid != 0)
    processes[0] = {pid, scenario.gpu_number(index_of(device), "process_memory", 0), 0, 0};
  return code_of(index_of(device), "nvmlDeviceGetComputeRunningProcesses_v3");
}
int nvmlEventSetCreate(NvmlEventSet* set) {
  *set = &events_left;
  return 0;
}
int nvmlDeviceRegisterEvents(NvmlDevice, unsigned long long, NvmlEventSet) { return 0; }
int nvmlEventSetWait_v2(NvmlEventSet, NvmlEvent* event, unsigned) {
  if (events_left == 0) return 10;  // time is up
  const std::string at = "event." + std::to_string(--events_left) + ".";
  event->device =
      reinterpret_cast<NvmlDevice>(static_cast<uintptr_t>(scenario.number(at + "gpu", 0) + 1));
  event->type = kEventXid;
  event->data = scenario.number(at + "xid", 0);
  return 0;
}
int nvmlEventSetFree(NvmlEventSet) { return 0; }

struct FakeUtilization {
  unsigned gpu, memory;
};
int nvmlDeviceGetUtilizationRates(NvmlDevice device, FakeUtilization* use) {
  use->memory = 10;
  return put(device, "nvmlDeviceGetUtilizationRates", "utilization", &use->gpu, 75U);
}

}  // extern "C"
