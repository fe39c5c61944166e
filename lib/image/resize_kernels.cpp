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
using Ints16 = int32_t __attribute__((vector_size(64)));

constexpr int32_t kHalf = 1 << (kWeightBits - 1);

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

MM_CPU_CLONES void weigh_pixels(const uint8_t* pixels, const int32_t* weights, int32_t count,
                                uint8_t* out) {
  Ints16 r = Ints16{} + kHalf, g = r, b = r;
  for (int32_t k = 0; k < count; ++k, pixels += 3 * kLanes) {
    Bytes16 bytes[3];
    std::memcpy(bytes, pixels, sizeof(bytes));
    r += __builtin_convertvector(bytes[0], Ints16) * weights[k];
    g += __builtin_convertvector(bytes[1], Ints16) * weights[k];
    b += __builtin_convertvector(bytes[2], Ints16) * weights[k];
  }
  Ints16 sums[3] = {r, g, b};
  for (int c = 0; c < 3; ++c) {
    Ints16 v = sums[c] >> kWeightBits;
    v = v < 0 ? 0 : v;
    v = v > 255 ? 255 : v;
    const Bytes16 bytes = __builtin_convertvector(v, Bytes16);
    std::memcpy(out + c * kLanes, &bytes, sizeof(bytes));
  }
}

MM_CPU_CLONES void weigh_rows(const uint8_t* in, size_t stride, const int32_t* weights,
                              int32_t count, size_t columns, uint8_t* out) {
  for (size_t x = 0; x < columns; x += 64) {
    Ints16 sums[4];
    for (int i = 0; i < 4; ++i) sums[i] = Ints16{} + kHalf;
    for (int32_t k = 0; k < count; ++k) {
      Bytes16 bytes[4];
      std::memcpy(bytes, in + stride * k + x, sizeof(bytes));
      for (int i = 0; i < 4; ++i) sums[i] += __builtin_convertvector(bytes[i], Ints16) * weights[k];
    }
    for (int i = 0; i < 4; ++i) {
      Ints16 v = sums[i] >> kWeightBits;
      v = v < 0 ? 0 : v;
      v = v > 255 ? 255 : v;
      const Bytes16 bytes = __builtin_convertvector(v, Bytes16);
      std::memcpy(out + x + 16 * i, &bytes, sizeof(bytes));
    }
  }
}

}  // namespace mm::image
