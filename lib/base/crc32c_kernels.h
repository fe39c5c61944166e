#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace mm::detail {

/// A way to compute CRC-32C; all give the same value. `seed` is the CRC of what came before.
struct Crc32cKernel {
  std::string_view name;
  uint32_t (*run)(std::span<const std::byte> bytes, uint32_t seed);
  /// Copies whole blocks of kFoldBytes by streaming stores in the same pass; `to` begins a line of
  /// 64 bytes. Null where there is no such way.
  uint32_t (*copy)(std::span<const std::byte> bytes, std::byte* to, uint32_t seed);
};
inline constexpr size_t kFoldBytes = 256;

/// Those that this CPU runs, fastest first; the last is the portable one.
std::span<const Crc32cKernel> usable_crc32c();

#if defined(__x86_64__)
/// The SSE4.2 instruction in three lanes side by side: about 8 bytes a cycle.
uint32_t crc32c_sse42(std::span<const std::byte> bytes, uint32_t seed);
/// Folds 256 bytes at a time by carry-less products (Gopal et al., "Fast CRC computation for
/// generic polynomials using PCLMULQDQ", Intel 2009), the ends by the instruction. Needs AVX-512F,
/// VPCLMULQDQ and SSE4.2. As fast as bytes come from the second-level cache.
uint32_t crc32c_avx512(std::span<const std::byte> bytes, uint32_t seed);
uint32_t copy_crc32c_avx512(std::span<const std::byte> bytes, std::byte* to, uint32_t seed);
#endif

}  // namespace mm::detail
