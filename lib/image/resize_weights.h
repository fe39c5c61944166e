#pragma once
#include <cstdint>
#include <vector>

#include "lib/image/resize.h"

namespace mm::image {

/// Fractional bits of a weight: value 2^22 is 1. A byte times a weight, summed over a kernel, stays
/// inside 32 bits.
inline constexpr int kWeightBits = 22;

/// The input pixels [first, first + count) of one output pixel, and where their weights begin.
struct Taps {
  int32_t first = 0;
  int32_t count = 0;
  size_t weights_at = 0;
};

/// Fixed-point weights of one axis for output pixels [from, from + taps.size()).
struct WeightTable {
  std::vector<Taps> taps;
  std::vector<int32_t> weights;
};

/// Weights for `in` -> `out` pixels as Pillow 12 makes them; see resize.h. Not for kNearest.
/// `count` outputs from `from`.
WeightTable make_weights(int32_t in, int32_t out, Filter filter, int32_t from, int32_t count);

/// For kNearest: the source of each output pixel [from, from + count). The position is stepped by
/// addition, as Pillow does.
std::vector<int32_t> nearest_sources(int32_t in, int32_t out, int32_t from, int32_t count);

}  // namespace mm::image
