#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/bf16_bits.h"
#include "kernels/host_device.h"

namespace mm::kernels {

// Storage types of the fused ops: T is double, float or Bf16; the arithmetic is in Acc<T>, which is
// double for double, else float. CUDA twins exist for float and Bf16.

/// Storage of a bf16 element.
struct Bf16 {
  uint16_t bits;
};

template <typename T>
struct AccOf {
  using type = float;
};
template <>
struct AccOf<double> {
  using type = double;
};
template <typename T>
using Acc = typename AccOf<T>::type;

/// Rows of `cols` elements, one after another.
struct Shape {
  int64_t rows = 0, cols = 0;
};

MM_HOST_DEVICE inline double load(double x) { return x; }
MM_HOST_DEVICE inline float load(float x) { return x; }
MM_HOST_DEVICE inline float load(Bf16 x) {
  const uint32_t bits = static_cast<uint32_t>(x.bits) << 16;
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}
MM_HOST_DEVICE inline void store(double v, double& to) { to = v; }
MM_HOST_DEVICE inline void store(float v, float& to) { to = v; }
MM_HOST_DEVICE inline void store(float v, Bf16& to) { to.bits = bf16_bits(v); }

MM_HOST_DEVICE inline double exponential(double x) { return exp(x); }

/// e^x = 2^n e^r, |r| <= ln2 / 2, e^r by its series to r^7: the first term left out is below 6e-9,
/// a tenth of an ulp. n comes from adding 1.5 * 2^23, which leaves it in the low bits of the sum.
/// Branch-free, so loops over it become vector code. Arguments are cut to [-87, 88].
MM_HOST_DEVICE inline float exponential(float x) {
  x = x < -87.0f ? -87.0f : (x > 88.0f ? 88.0f : x);
  const float shifted = x * 1.44269504f + 12582912.0f;
  const float n = shifted - 12582912.0f;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.0f / 5040.0f;
  p = p * r + 1.0f / 720.0f;
  p = p * r + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  uint32_t exponent, bits;
  memcpy(&exponent, &shifted, sizeof(exponent));
  memcpy(&bits, &p, sizeof(bits));
  bits += exponent << 23;
  memcpy(&p, &bits, sizeof(p));
  return p;
}

template <typename A>
MM_HOST_DEVICE inline A sigmoid(A x) {
  return A(1) / (A(1) + exponential(-x));
}

/// Partial sums that a compiler may keep in vector registers without reordering a sum of its own.
constexpr int kLanes = 16;

template <typename A>
inline A sum_lanes(const A* lanes) {
  A sum = 0;
  for (int l = 0; l < kLanes; ++l) sum += lanes[l];
  return sum;
}

}  // namespace mm::kernels
