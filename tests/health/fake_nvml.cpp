#include <cstdint>
#include <cstdio>

// Two devices; the second is lost, as NVML says it: error 15.

extern "C" {

struct FakeMemory {
  unsigned long long total, free, used;
};

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
const char* nvmlErrorString(int code) { return code == 15 ? "GPU is lost" : "Success"; }
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::snprintf(text, size, "570.1");
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = reinterpret_cast<void*>(static_cast<uintptr_t>(index + 1));
  return 0;
}
int nvmlDeviceGetName(void*, char* text, unsigned size) {
  std::snprintf(text, size, "Fake H100");
  return 0;
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  std::snprintf(text, size, "GPU-%u", static_cast<unsigned>(reinterpret_cast<uintptr_t>(device)));
  return 0;
}
int nvmlDeviceGetMemoryInfo(void* device, FakeMemory* memory) {
  if (reinterpret_cast<uintptr_t>(device) == 2) return 15;
  *memory = {80ULL << 30, 70ULL << 30, 10ULL << 30};
  return 0;
}

struct FakeUtilization {
  unsigned gpu, memory;
};
int nvmlDeviceGetUtilizationRates(void* device, FakeUtilization* use) {
  if (reinterpret_cast<uintptr_t>(device) == 2) return 15;
  *use = {75, 10};
  return 0;
}

}  // extern "C"
