#include "lib/health/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cstdint>

namespace mm::health {

#if defined(__x86_64__)
namespace {

struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Registers cpuid(unsigned leaf, unsigned subleaf) {
  Registers r;
  // Leaves beyond the CPU's last one leave zeros.
  if (__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) return {};
  return r;
}

bool bit(unsigned word, int index) { return ((word >> index) & 1U) != 0; }

// Which register state the kernel saves (XCR0); an instruction set without it faults.
uint64_t saved_state() {
  if (!bit(cpuid(1, 0).ecx, 27)) return 0;
  unsigned low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

}  // namespace

CpuFeatures cpu_features() {
  constexpr uint64_t kAvxState = 0x6, kAvx512State = 0xE6, kTileState = 0x60000;
  const uint64_t state = saved_state();
  const Registers seven = cpuid(7, 0), seven_one = cpuid(7, 1);
  const bool avx512_saved = (state & kAvx512State) == kAvx512State;
  CpuFeatures features;
  features.avx2 = (state & kAvxState) == kAvxState && bit(seven.ebx, 5);
  features.avx512 = avx512_saved && bit(seven.ebx, 16) && bit(seven.ebx, 17) &&
                    bit(seven.ebx, 30) && bit(seven.ebx, 31);
  features.avx512_bf16 = features.avx512 && bit(seven_one.eax, 5);
  features.amx_bf16 =
      (state & kTileState) == kTileState && bit(seven.edx, 22) && bit(seven.edx, 24);
  return features;
}
#else
CpuFeatures cpu_features() { return {}; }
#endif

bool has_fast_bf16() {
  const CpuFeatures features = cpu_features();
  return features.avx512_bf16 || features.amx_bf16;
}

std::vector<std::string> feature_names(const CpuFeatures& features) {
  std::vector<std::string> names;
  if (features.avx2) names.emplace_back("avx2");
  if (features.avx512) names.emplace_back("avx512");
  if (features.avx512_bf16) names.emplace_back("avx512_bf16");
  if (features.amx_bf16) names.emplace_back("amx_bf16");
  return names;
}

}  // namespace mm::health
