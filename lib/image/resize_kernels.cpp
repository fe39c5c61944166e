#include "lib/image/resize_kernels.h"

#include <cstring>
#include <utility>

#include "lib/image/resize_weights.h"

// One binary for every x86-64: the loader picks the widest copy that the CPU runs. All copies
// compute the same integers.
#if defined(__x86_64__) && !defined(__clang__)
#define MM_CPU_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define MM_CPU_CLONES
#endif

namespace mm::image {
namespace {

using Bytes16 = uint8_t __attribute__((vector_size(16)));

constexpr int32_t kHalf = 1 << (kWeightBits - 1);

inline uint8_t to_byte(int32_t sum) {
  const int32_t v = sum >> kWeightBits;
  return static_cast<uint8_t>(v < 0 ? 0 : v > 255 ? 255 : v);
}

// Four rounds of interleaving row i with row i + 8 transpose 16 x 16 bytes.
void transpose(Bytes16 (&m)[16]) {
  constexpr Bytes16 kLow = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23};
  constexpr Bytes16 kHigh = {8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  for (int round = 0; round < 4; ++round) {
    Bytes16 next[16];
    for (int i = 0; i < 8; ++i) {
      next[2 * i] = __builtin_shuffle(m[i], m[i + 8], kLow);
      next[2 * i + 1] = __builtin_shuffle(m[i], m[i + 8], kHigh);
    }
    std::memcpy(m, next, sizeof(next));
  }
}

}  // namespace

void rows_to_lanes(const uint8_t* rows, size_t stride, size_t columns, uint8_t* lanes) {
  size_t at = 0;
  for (; at + 16 <= columns; at += 16) {
    Bytes16 m[16];
    for (int r = 0; r < 16; ++r) std::memcpy(&m[r], rows + stride * r + at, 16);
    transpose(m);
    std::memcpy(lanes + at * 16, m, sizeof(m));
  }
  for (; at < columns; ++at) {
    for (int r = 0; r < 16; ++r) lanes[at * 16 + r] = rows[stride * r + at];
  }
}

void lanes_to_rows(const uint8_t* lanes, size_t columns, uint8_t* rows, size_t stride) {
  size_t at = 0;
  for (; at + 16 <= columns; at += 16) {
    Bytes16 m[16];
    std::memcpy(m, lanes + at * 16, sizeof(m));
    transpose(m);
    for (int r = 0; r < 16; ++r) std::memcpy(rows + stride * r + at, &m[r], 16);
  }
  for (; at < columns; ++at) {
    for (int r = 0; r < 16; ++r) rows[stride * r + at] = lanes[at * 16 + r];
  }
}

// Three accumulators of one lane width each: the compiler keeps them in registers, which one array
// of 48 defeats (half the speed).
MM_CPU_CLONES void weigh_pixels(const uint8_t* __restrict pixels, const int32_t* __restrict weights,
                                int32_t count, uint8_t* __restrict out) {
  int32_t r[kLanes], g[kLanes], b[kLanes];
  for (int i = 0; i < kLanes; ++i) r[i] = g[i] = b[i] = kHalf;
  for (int32_t k = 0; k < count; ++k, pixels += 3 * kLanes) {
    const int32_t weight = weights[k];
    for (int i = 0; i < kLanes; ++i) r[i] += weight * pixels[i];
    for (int i = 0; i < kLanes; ++i) g[i] += weight * pixels[kLanes + i];
    for (int i = 0; i < kLanes; ++i) b[i] += weight * pixels[2 * kLanes + i];
  }
  for (int i = 0; i < kLanes; ++i) out[i] = to_byte(r[i]);
  for (int i = 0; i < kLanes; ++i) out[kLanes + i] = to_byte(g[i]);
  for (int i = 0; i < kLanes; ++i) out[2 * kLanes + i] = to_byte(b[i]);
}

MM_CPU_CLONES void weigh_rows(const uint8_t* __restrict in, size_t stride,
                              const int32_t* __restrict weights, int32_t count, size_t columns,
                              uint8_t* __restrict out) {
  constexpr size_t kWide = 64;
  for (size_t x = 0; x < columns; x += kWide) {
    int32_t sums[kWide];
    for (size_t i = 0; i < kWide; ++i) sums[i] = kHalf;
    for (int32_t k = 0; k < count; ++k) {
      const uint8_t* row = in + stride * k + x;
      const int32_t weight = weights[k];
      for (size_t i = 0; i < kWide; ++i) sums[i] += weight * row[i];
    }
    for (size_t i = 0; i < kWide; ++i) out[x + i] = to_byte(sums[i]);
  }
}

}  // namespace mm::image
