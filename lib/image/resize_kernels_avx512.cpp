// Compiled for AVX-512 function by function, so that nothing else of this file's headers is.
#include "lib/image/resize_kernels_x86.h"

#if defined(__x86_64__)
// g++ 12 takes the "undefined" source of an unmasked intrinsic for a mistake of ours.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#include <cstring>

#include "lib/image/resize_weights.h"

#define MM_AVX512 __attribute__((target("avx512f,avx512bw,avx512vnni")))

namespace mm::image {
namespace {

constexpr int32_t kHalf = 1 << (kWeightBits - 1);
constexpr int kDigits = 3;
constexpr size_t kPackedBytes = kDigits * kQuad;

// Digits in [-128, 127]; the last holds what is left, at most about 1.3 * 2^22 / 2^16.
void pack_quad(const int32_t* weights, uint8_t* packed) {
  for (int i = 0; i < kQuad; ++i) {
    int32_t rest = weights[i];
    for (int d = 0; d < kDigits; ++d) {
      const auto digit = static_cast<int8_t>(rest);
      packed[kQuad * d + i] = static_cast<uint8_t>(digit);
      rest = (rest - digit) >> 8;
    }
  }
}

MM_AVX512 __m512i broadcast(const uint8_t* four_bytes) {
  int32_t value = 0;
  std::memcpy(&value, four_bytes, sizeof(value));
  return _mm512_set1_epi32(value);
}

MM_AVX512 __m512i joined(const __m512i (&digits)[kDigits]) {
  const __m512i sum =
      _mm512_add_epi32(_mm512_slli_epi32(digits[2], 16), _mm512_slli_epi32(digits[1], 8));
  return _mm512_srai_epi32(
      _mm512_add_epi32(_mm512_add_epi32(sum, digits[0]), _mm512_set1_epi32(kHalf)), kWeightBits);
}

MM_AVX512 void weigh_quads(const uint8_t* quads, const uint8_t* packed, int32_t count,
                           uint8_t* out) {
  __m512i sums[3][kDigits];
  for (auto& channel : sums)
    for (__m512i& sum : channel) sum = _mm512_setzero_si512();
  for (int32_t q = 0; q < count; ++q, quads += kQuadBytes, packed += kPackedBytes) {
    const __m512i weights[kDigits] = {broadcast(packed), broadcast(packed + kQuad),
                                      broadcast(packed + 2 * kQuad)};
    for (int c = 0; c < 3; ++c) {
      const __m512i taps = _mm512_loadu_si512(quads + size_t{64} * c);
      for (int d = 0; d < kDigits; ++d)
        sums[c][d] = _mm512_dpbusd_epi32(sums[c][d], taps, weights[d]);
    }
  }
  for (int c = 0; c < 3; ++c) {
    const __m512i clipped = _mm512_max_epi32(joined(sums[c]), _mm512_setzero_si512());
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + kLanes * c), _mm512_cvtusepi32_epi8(clipped));
  }
}

// Four rows of 64 columns as [4 rows] of a column in each 32-bit element: taps[i] holds columns 4 i
// .. 4 i + 3 of each quarter of 16.
MM_AVX512 void load_four_rows(const uint8_t* rows, size_t stride, __m512i (&taps)[4]) {
  __m512i row[4];
  for (int r = 0; r < 4; ++r) row[r] = _mm512_loadu_si512(rows + stride * r);
  const __m512i near01 = _mm512_unpacklo_epi8(row[0], row[1]),
                far01 = _mm512_unpackhi_epi8(row[0], row[1]),
                near23 = _mm512_unpacklo_epi8(row[2], row[3]),
                far23 = _mm512_unpackhi_epi8(row[2], row[3]);
  taps[0] = _mm512_unpacklo_epi16(near01, near23);
  taps[1] = _mm512_unpackhi_epi16(near01, near23);
  taps[2] = _mm512_unpacklo_epi16(far01, far23);
  taps[3] = _mm512_unpackhi_epi16(far01, far23);
}

MM_AVX512 void weigh_rows(const uint8_t* in, size_t stride, const uint8_t* packed, int32_t count,
                          size_t columns, uint8_t* out) {
  for (size_t x = 0; x < columns; x += kWideColumns) {
    __m512i sums[4][kDigits];
    for (auto& column : sums)
      for (__m512i& sum : column) sum = _mm512_setzero_si512();
    const uint8_t* rows = in + x;
    const uint8_t* weights = packed;
    for (int32_t q = 0; q < count; ++q, rows += kQuad * stride, weights += kPackedBytes) {
      __m512i taps[4];
      load_four_rows(rows, stride, taps);
      for (int d = 0; d < kDigits; ++d) {
        const __m512i weight = broadcast(weights + kQuad * d);
        for (int i = 0; i < 4; ++i) sums[i][d] = _mm512_dpbusd_epi32(sums[i][d], taps[i], weight);
      }
    }
    const __m512i bytes = _mm512_packus_epi16(_mm512_packs_epi32(joined(sums[0]), joined(sums[1])),
                                              _mm512_packs_epi32(joined(sums[2]), joined(sums[3])));
    _mm512_storeu_si512(out + x, bytes);
  }
}

}  // namespace

const ResizeKernels kAvx512Kernels = {"avx512",           kPackedBytes, pack_quad,
                                      rows_to_quads_avx2, weigh_quads,  weigh_rows};

}  // namespace mm::image
#endif
