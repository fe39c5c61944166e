#pragma once
#include <cstdint>
#include <cstring>

#include "kernels/host_device.h"

namespace mm::kernels {

/// The arithmetic of one element, shared by the CPU and the CUDA twin and tested on the CPU: fp32
/// -> bf16, round to nearest, ties to even; NaN stays a (quiet) NaN, overflow becomes infinity as
/// rounding demands.
MM_HOST_DEVICE inline uint16_t bf16_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x0040u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace mm::kernels
