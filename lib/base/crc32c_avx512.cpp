// Compiled for AVX-512 function by function, so that nothing else of this file's headers is.
#include "lib/base/crc32c_kernels.h"

#if defined(__x86_64__)
// g++ 12 takes the "undefined" source of an unmasked intrinsic for a mistake of ours.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#include <cstring>

#define MM_FOLDING __attribute__((target("avx512f,vpclmulqdq,pclmul,sse4.2")))

namespace mm::detail {
namespace {

/// x^n modulo the polynomial, bit 31 the constant term, one place up: a carry-less product of two
/// reflected numbers is one place short.
constexpr uint64_t power(uint64_t n) {
  uint32_t value = 0x80000000u;
  for (uint64_t i = 0; i < n; ++i) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82F63B78u : 0u);
  return uint64_t{value} << 1;
}

/// What moves 128 bits on by `bits`: one factor for each half.
struct Step {
  uint64_t low, high;
};
constexpr Step step_of(uint64_t bits) { return {power(bits + 32), power(bits - 32)}; }
constexpr Step kBlock = step_of(2048), kVector = step_of(512), kLane = step_of(128);

MM_FOLDING __m128i factors(const Step& step) {
  return _mm_set_epi64x(static_cast<int64_t>(step.high), static_cast<int64_t>(step.low));
}

/// Four lanes of `sum` moved on by what `by` says, and what lies there.
MM_FOLDING __m512i fold(__m512i sum, __m512i by, __m512i there) {
  constexpr int kXorOfThree = 0x96;
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(sum, by, 0x00),
                                   _mm512_clmulepi64_epi128(sum, by, 0x11), there, kXorOfThree);
}

MM_FOLDING __m128i fold(__m128i sum, __m128i by, __m128i there) {
  return _mm_xor_si128(
      _mm_xor_si128(_mm_clmulepi64_si128(sum, by, 0x00), _mm_clmulepi64_si128(sum, by, 0x11)),
      there);
}

/// Register after four vectors: 2,048 bits to 128, those by the instruction.
MM_FOLDING uint64_t joined(const __m512i (&sums)[4]) {
  const __m512i by = _mm512_broadcast_i32x4(factors(kVector));
  __m512i all = sums[0];
  for (int i = 1; i < 4; ++i) all = fold(all, by, sums[i]);
  __m128i lanes[4];
  std::memcpy(lanes, &all, sizeof(all));
  __m128i sum = lanes[0];
  for (int i = 1; i < 4; ++i) sum = fold(sum, factors(kLane), lanes[i]);
  const auto low = static_cast<uint64_t>(_mm_cvtsi128_si64(sum));
  const auto high = static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_unpackhi_epi64(sum, sum)));
  return _mm_crc32_u64(_mm_crc32_u64(0, low), high);
}

/// Four vectors from `at`; with kCopy they are stored at `to` past the caches.
template <bool kCopy>
MM_FOLDING void take(const std::byte* at, std::byte* to, __m512i (&vectors)[4]) {
  for (int i = 0; i < 4; ++i) {
    vectors[i] = _mm512_loadu_si512(at + 64 * i);
    if (kCopy) _mm512_stream_si512(reinterpret_cast<__m512i*>(to) + i, vectors[i]);
  }
}

/// `blocks` > 0 times kFoldBytes, from a register.
template <bool kCopy>
MM_FOLDING uint64_t fold_blocks(const std::byte* at, std::byte* to, size_t blocks, uint64_t crc) {
  const __m512i by = _mm512_broadcast_i32x4(factors(kBlock));
  __m512i sums[4], vectors[4];
  take<kCopy>(at, to, sums);
  const __m128i seed = _mm_cvtsi64_si128(static_cast<int64_t>(crc));
  sums[0] = _mm512_xor_si512(sums[0], _mm512_zextsi128_si512(seed));
  for (size_t b = 1; b < blocks; ++b) {
    take<kCopy>(at + kFoldBytes * b, kCopy ? to + kFoldBytes * b : to, vectors);
    for (int i = 0; i < 4; ++i) sums[i] = fold(sums[i], by, vectors[i]);
  }
  return joined(sums);
}

}  // namespace

MM_FOLDING uint32_t crc32c_avx512(std::span<const std::byte> bytes, uint32_t seed) {
  uint64_t crc = static_cast<uint32_t>(~seed);
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  if (const size_t blocks = left / kFoldBytes; blocks > 1) {
    crc = fold_blocks<false>(at, nullptr, blocks, crc);
    at += blocks * kFoldBytes;
    left -= blocks * kFoldBytes;
  }
  for (; left >= 8; left -= 8, at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, at, sizeof(word));
    crc = _mm_crc32_u64(crc, word);
  }
  auto low = static_cast<uint32_t>(crc);
  for (; left > 0; --left, ++at) low = _mm_crc32_u8(low, static_cast<uint8_t>(*at));
  return ~low;
}

MM_FOLDING uint32_t copy_crc32c_avx512(std::span<const std::byte> bytes, std::byte* to,
                                       uint32_t seed) {
  const size_t blocks = bytes.size() / kFoldBytes;
  if (blocks == 0) return seed;
  const uint64_t crc = static_cast<uint32_t>(~seed);
  return ~static_cast<uint32_t>(fold_blocks<true>(bytes.data(), to, blocks, crc));
}

}  // namespace mm::detail
#endif
