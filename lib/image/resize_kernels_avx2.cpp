// Compiled for AVX2 function by function, so that nothing else of this file's headers is.
#include "lib/image/resize_kernels_x86.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <cstring>

#include "lib/image/resize_weights.h"

#define MM_AVX2 __attribute__((target("avx2")))

namespace mm::image {
namespace {

constexpr int kLowBits = 12;
constexpr int32_t kHalf = 1 << (kWeightBits - 1);
constexpr size_t kPackedBytes = 2 * kQuad * sizeof(int16_t);

// low in [-2048, 2047], so that high = (w - low) / 4096 is exact and small.
void pack_quad(const int32_t* weights, uint8_t* packed) {
  int16_t parts[2][kQuad];
  for (int i = 0; i < kQuad; ++i) {
    const int32_t low =
        ((weights[i] + (1 << (kLowBits - 1))) & ((1 << kLowBits) - 1)) - (1 << (kLowBits - 1));
    parts[0][i] = static_cast<int16_t>(low);
    parts[1][i] = static_cast<int16_t>((weights[i] - low) >> kLowBits);
  }
  std::memcpy(packed, parts, sizeof(parts));
}

MM_AVX2 __m256i load_pair(const uint8_t* low, const uint8_t* high) {
  const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(low));
  const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(high));
  return _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
}

// Rows r..r+3 in the lower half, r+4..r+7 in the upper: 12 bytes of each to three channels of four
// taps, then a transposition of 32-bit elements.
MM_AVX2 void gather_eight(const uint8_t* rows, size_t stride, uint8_t* quad) {
  const __m256i split = _mm256_setr_epi8(0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11, -1, -1, -1, -1, 0, 3,
                                         6, 9, 1, 4, 7, 10, 2, 5, 8, 11, -1, -1, -1, -1);
  __m256i row[4];
  for (int r = 0; r < 4; ++r) {
    row[r] = _mm256_shuffle_epi8(load_pair(rows + stride * r, rows + stride * (r + 4)), split);
  }
  const __m256i rg01 = _mm256_unpacklo_epi32(row[0], row[1]),
                rg23 = _mm256_unpacklo_epi32(row[2], row[3]),
                b01 = _mm256_unpackhi_epi32(row[0], row[1]),
                b23 = _mm256_unpackhi_epi32(row[2], row[3]);
  auto* out = reinterpret_cast<__m256i*>(quad);
  constexpr int kChannel = 2;  // vectors of 32 bytes
  _mm256_storeu_si256(out, _mm256_unpacklo_epi64(rg01, rg23));
  _mm256_storeu_si256(out + kChannel, _mm256_unpackhi_epi64(rg01, rg23));
  _mm256_storeu_si256(out + 2 * kChannel, _mm256_unpacklo_epi64(b01, b23));
}

MM_AVX2 __m256i broadcast(const uint8_t* eight_bytes) {
  int64_t value = 0;
  std::memcpy(&value, eight_bytes, sizeof(value));
  return _mm256_set1_epi64x(value);
}

MM_AVX2 __m256i joined(__m256i low, __m256i high) {
  return _mm256_add_epi32(low, _mm256_slli_epi32(high, kLowBits));
}

// One channel of 16 lanes. sums[i] holds lanes 4 i .. 4 i + 3, each as two partial sums.
MM_AVX2 void weigh_channel(const uint8_t* quads, const uint8_t* packed, int32_t count,
                           uint8_t* out) {
  __m256i low[4], high[4];
  for (int i = 0; i < 4; ++i) low[i] = high[i] = _mm256_setzero_si256();
  for (int32_t q = 0; q < count; ++q, quads += kQuadBytes, packed += kPackedBytes) {
    const __m256i low_weights = broadcast(packed), high_weights = broadcast(packed + 8);
    for (int i = 0; i < 4; ++i) {
      const __m256i taps =
          _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(quads + 16 * i)));
      low[i] = _mm256_add_epi32(low[i], _mm256_madd_epi16(taps, low_weights));
      high[i] = _mm256_add_epi32(high[i], _mm256_madd_epi16(taps, high_weights));
    }
  }
  constexpr int kInOrder = 0xD8;  // 64-bit elements 0, 2, 1, 3
  __m256i sums[2];
  for (int i = 0; i < 2; ++i) {
    const __m256i pairs =
        _mm256_hadd_epi32(joined(low[2 * i], high[2 * i]), joined(low[2 * i + 1], high[2 * i + 1]));
    const __m256i sum =
        _mm256_add_epi32(_mm256_permute4x64_epi64(pairs, kInOrder), _mm256_set1_epi32(kHalf));
    sums[i] = _mm256_srai_epi32(sum, kWeightBits);
  }
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(sums[0], sums[1]), kInOrder);
  _mm_storeu_si128(
      reinterpret_cast<__m128i*>(out),
      _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
}

MM_AVX2 void weigh_quads(const uint8_t* quads, const uint8_t* packed, int32_t count, uint8_t* out) {
  for (size_t c = 0; c < 3; ++c)
    weigh_channel(quads + c * kLanes * kQuad, packed, count, out + c * kLanes);
}

// Adds two rows of 32 columns; sums[i] holds columns 4 i .. 4 i + 3 of each half of 16.
MM_AVX2 void add_two_rows(const uint8_t* first, const uint8_t* second, const uint8_t* packed,
                          __m256i (&low)[4], __m256i (&high)[4]) {
  const __m256i zero = _mm256_setzero_si256();
  const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(first)),
                b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(second));
  const __m256i near = _mm256_unpacklo_epi8(a, b), far = _mm256_unpackhi_epi8(a, b);
  const __m256i taps[4] = {_mm256_unpacklo_epi8(near, zero), _mm256_unpackhi_epi8(near, zero),
                           _mm256_unpacklo_epi8(far, zero), _mm256_unpackhi_epi8(far, zero)};
  int32_t low_pair = 0, high_pair = 0;
  std::memcpy(&low_pair, packed, sizeof(low_pair));
  std::memcpy(&high_pair, packed + kPackedBytes / 2, sizeof(high_pair));
  const __m256i low_weights = _mm256_set1_epi32(low_pair),
                high_weights = _mm256_set1_epi32(high_pair);
  for (int i = 0; i < 4; ++i) {
    low[i] = _mm256_add_epi32(low[i], _mm256_madd_epi16(taps[i], low_weights));
    high[i] = _mm256_add_epi32(high[i], _mm256_madd_epi16(taps[i], high_weights));
  }
}

MM_AVX2 void weigh_rows(const uint8_t* in, size_t stride, const uint8_t* packed, int32_t count,
                        size_t columns, uint8_t* out) {
  constexpr size_t kColumns = 32;
  for (size_t x = 0; x < columns; x += kColumns) {
    __m256i low[4], high[4];
    for (int i = 0; i < 4; ++i) low[i] = high[i] = _mm256_setzero_si256();
    const uint8_t* rows = in + x;
    const uint8_t* weights = packed;
    for (int32_t q = 0; q < count; ++q, rows += kQuad * stride, weights += kPackedBytes) {
      add_two_rows(rows, rows + stride, weights, low, high);
      add_two_rows(rows + 2 * stride, rows + 3 * stride, weights + 4, low, high);
    }
    __m256i sums[4];
    for (int i = 0; i < 4; ++i) {
      const __m256i sum = _mm256_add_epi32(joined(low[i], high[i]), _mm256_set1_epi32(kHalf));
      sums[i] = _mm256_srai_epi32(sum, kWeightBits);
    }
    const __m256i bytes = _mm256_packus_epi16(_mm256_packs_epi32(sums[0], sums[1]),
                                              _mm256_packs_epi32(sums[2], sums[3]));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + x), bytes);
  }
}

}  // namespace

// A load takes 16 bytes for a quad of 12, so the row's last quads are gathered by plain loops.
MM_AVX2 void rows_to_quads_avx2(const uint8_t* rows, size_t stride, size_t pixels, uint8_t* quads) {
  constexpr size_t kTaken = 12, kLoaded = 16;
  const size_t row_bytes = 3 * pixels;
  size_t q = 0;
  for (; kTaken * q + kLoaded <= row_bytes; ++q) {
    gather_eight(rows + kTaken * q, stride, quads + kQuadBytes * q);
    gather_eight(rows + kTaken * q + 8 * stride, stride, quads + kQuadBytes * q + 32);
  }
  kPortableKernels.rows_to_quads(rows + kTaken * q, stride, pixels - kQuad * q,
                                 quads + kQuadBytes * q);
}

const ResizeKernels kAvx2Kernels = {"avx2",      kPackedBytes, pack_quad, rows_to_quads_avx2,
                                    weigh_quads, weigh_rows};

}  // namespace mm::image
#endif
