#include "lib/image/resize_kernels.h"

#include <array>
#include <cstring>
#include <utility>

#include "lib/image/resize_kernels_x86.h"
#include "lib/image/resize_weights.h"

namespace mm::image {
namespace {

using Bytes16 = uint8_t __attribute__((vector_size(16)));

constexpr int32_t kHalf = 1 << (kWeightBits - 1);

uint8_t to_byte(uint32_t sum) {
  const int32_t v = static_cast<int32_t>(sum) >> kWeightBits;
  return static_cast<uint8_t>(v < 0 ? 0 : v > 255 ? 255 : v);
}

void pack_quad(const int32_t* weights, uint8_t* packed) {
  std::memcpy(packed, weights, kQuad * sizeof(int32_t));
}

void rows_to_quads(const uint8_t* rows, size_t stride, size_t pixels, uint8_t* quads) {
  for (size_t x = 0; x < pixels; ++x) {
    uint8_t* quad = quads + kQuadBytes * (x / kQuad) + x % kQuad;
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const uint8_t* pixel = rows + stride * lane + 3 * x;
      for (size_t c = 0; c < 3; ++c) quad[(c * kLanes + lane) * kQuad] = pixel[c];
    }
  }
}

// Sums are unsigned, so that partial sums may wrap.
void weigh_quads(const uint8_t* quads, const uint8_t* packed, int32_t count, uint8_t* out) {
  constexpr size_t kOutputs = size_t{3} * kLanes;
  uint32_t sums[kOutputs];
  for (uint32_t& sum : sums) sum = kHalf;
  for (int32_t q = 0; q < count; ++q, quads += kQuadBytes, packed += kQuad * sizeof(int32_t)) {
    uint32_t w[kQuad];
    std::memcpy(w, packed, sizeof(w));
    for (size_t i = 0; i < kOutputs; ++i) {
      const uint8_t* taps = quads + kQuad * i;
      sums[i] += w[0] * taps[0] + w[1] * taps[1] + w[2] * taps[2] + w[3] * taps[3];
    }
  }
  for (size_t i = 0; i < kOutputs; ++i) out[i] = to_byte(sums[i]);
}

void weigh_rows(const uint8_t* in, size_t stride, const uint8_t* packed, int32_t count,
                size_t columns, uint8_t* out) {
  for (size_t x = 0; x < columns; x += kWideColumns) {
    uint32_t sums[kWideColumns];
    for (uint32_t& sum : sums) sum = kHalf;
    for (int32_t k = 0; k < kQuad * count; ++k) {
      const uint8_t* row = in + stride * k + x;
      uint32_t weight = 0;
      std::memcpy(&weight, packed + sizeof(weight) * k, sizeof(weight));
      for (size_t i = 0; i < kWideColumns; ++i) sums[i] += weight * row[i];
    }
    for (size_t i = 0; i < kWideColumns; ++i) out[x + i] = to_byte(sums[i]);
  }
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

struct Usable {
  std::array<const ResizeKernels*, 3> sets{};
  size_t count = 0;
};

Usable find_usable() {
  Usable found;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vnni"))
    found.sets[found.count++] = &kAvx512Kernels;
  if (__builtin_cpu_supports("avx2")) found.sets[found.count++] = &kAvx2Kernels;
#endif
  found.sets[found.count++] = &kPortableKernels;
  return found;
}

}  // namespace

const ResizeKernels kPortableKernels = {
    "portable", kQuad * sizeof(int32_t), pack_quad, rows_to_quads, weigh_quads, weigh_rows};

std::span<const ResizeKernels* const> usable_kernels() {
  static const Usable usable = find_usable();
  return std::span(usable.sets).first(usable.count);
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

}  // namespace mm::image
