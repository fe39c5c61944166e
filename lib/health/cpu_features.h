#pragma once
#include <string>
#include <vector>

namespace mm::health {

/// Instruction sets that decide how fast this CPU trains; as /proc/cpuinfo names them.
struct CpuFeatures {
  bool avx2 = false;
  bool avx512 = false;       ///< avx512f, avx512bw, avx512dq and avx512vl
  bool avx512_bf16 = false;  ///< products of bfloat16 pairs
  bool amx_bf16 = false;     ///< bfloat16 tiles
};

/// Asks the CPU (cpuid) and the kernel (which register state it saves); nothing is executed that
/// could fault.
CpuFeatures cpu_features();

/// True if bfloat16 products are faster than float32 ones here: avx512_bf16 or amx_bf16.
bool has_fast_bf16();

/// {"avx2", "avx512", ...}: those present.
std::vector<std::string> feature_names(const CpuFeatures& features);

}  // namespace mm::health
