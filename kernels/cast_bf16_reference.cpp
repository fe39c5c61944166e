#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cast_bf16.h"

namespace mm::kernels {
namespace {

/// By value, not by bits: |x| = m * 2^e with 8 significant bits kept, so that no trick is shared
/// with the fast twins.
uint16_t rounded(double value) {
  if (std::isnan(value)) return 0x7fc0;
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::fabs(value);
  if (std::isinf(size)) return sign | 0x7f80;
  int exponent = 0;
  std::frexp(size, &exponent);
  // Spacing of bf16 numbers near `size`: 8 significant bits; below 2^-126 the spacing of
  // subnormals.
  const int spacing = std::max(exponent - 8, -126 - 7);
  const double units = std::nearbyint(std::ldexp(size, -spacing));
  const double result = std::ldexp(units, spacing);
  if (result == 0) return sign;
  std::frexp(result, &exponent);
  if (exponent > 128) return sign | 0x7f80;
  if (exponent < -125) return sign | static_cast<uint16_t>(std::ldexp(result, 126 + 7));
  const auto mantissa = static_cast<uint16_t>(std::ldexp(result, 8 - exponent));  // [128, 255]
  return sign | static_cast<uint16_t>(((exponent + 126) << 7) | (mantissa & 0x7f));
}

}  // namespace

void cast_bf16_reference(const float* x, uint16_t* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = rounded(x[i]);
}

}  // namespace mm::kernels
