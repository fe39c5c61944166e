#include "lib/ckpt/float_cast.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "lib/base/error.h"

namespace mm::ckpt {
namespace {

/// A 16-bit binary format: exponent bits of 2^-bias and explicit mantissa bits.
struct SmallFloat {
  int mantissa_bits, least_exponent, exponent_mask;
  double least_scale() const { return std::ldexp(1.0, least_exponent - mantissa_bits); }
};
constexpr SmallFloat kHalf = {10, -14, 31};
constexpr SmallFloat kBrain = {7, -126, 255};
constexpr uint16_t kSign = 0x8000;

double widen(uint16_t bits, const SmallFloat& format) {
  const int exponent = (bits & ~kSign) >> format.mantissa_bits;
  const int mantissa = bits & ((1 << format.mantissa_bits) - 1);
  double value;
  if (exponent == format.exponent_mask) {
    value = mantissa == 0 ? std::numeric_limits<double>::infinity()
                          : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    value = mantissa * format.least_scale();
  } else {
    value = std::ldexp(mantissa + (1 << format.mantissa_bits),
                       exponent - 1 + format.least_exponent - format.mantissa_bits);
  }
  return (bits & kSign) != 0 ? -value : value;
}

/// Infinity's bits for finite values that are too large.
uint16_t narrow(double value, const SmallFloat& format) {
  const uint16_t sign = std::signbit(value) ? kSign : 0;
  const auto infinity = static_cast<uint16_t>(format.exponent_mask << format.mantissa_bits);
  if (std::isnan(value))
    return static_cast<uint16_t>(sign | infinity | (1 << (format.mantissa_bits - 1)));
  const double size = std::fabs(value);
  if (std::isinf(size)) return sign | infinity;
  if (size == 0) return sign;
  const int exponent = std::max(std::ilogb(size), format.least_exponent);
  if (exponent - format.least_exponent >= format.exponent_mask) return sign | infinity;
  // Ties to even by the default rounding mode; a carry runs into the exponent as it should.
  const auto steps =
      static_cast<int>(std::nearbyint(std::ldexp(size, format.mantissa_bits - exponent)));
  const int bits = ((exponent - format.least_exponent) << format.mantissa_bits) + steps;
  return static_cast<uint16_t>(sign | std::min<int>(bits, infinity));
}

template <typename T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

double read_element(const std::byte* at, DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return widen(load<uint16_t>(at), kHalf);
    case DType::kBF16:
      return widen(load<uint16_t>(at), kBrain);
    case DType::kF32:
      return load<float>(at);
    default:
      return load<double>(at);
  }
}

/// False if a finite value became infinite.
bool write_element(std::byte* at, double value, DType dtype) {
  double kept = value;
  if (dtype == DType::kF16 || dtype == DType::kBF16) {
    const SmallFloat& format = dtype == DType::kF16 ? kHalf : kBrain;
    const uint16_t bits = narrow(value, format);
    std::memcpy(at, &bits, sizeof bits);
    kept = widen(bits, format);
  } else if (dtype == DType::kF32) {
    const auto single = static_cast<float>(value);
    std::memcpy(at, &single, sizeof single);
    kept = single;
  } else {
    std::memcpy(at, &value, sizeof value);
  }
  return std::isfinite(kept) || !std::isfinite(value);
}

}  // namespace

bool is_float_dtype(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16 || dtype == DType::kF32 ||
         dtype == DType::kF64;
}

std::vector<std::byte> cast_floats(std::span<const std::byte> in, DType from, DType to,
                                   std::string_view origin) {
  MM_CHECK(is_float_dtype(from) && is_float_dtype(to), "{}: cast from {} to {}", origin,
           dtype_name(from), dtype_name(to));
  const auto in_size = static_cast<size_t>(size_bits(from) / 8);
  const auto out_size = static_cast<size_t>(size_bits(to) / 8);
  const size_t count = in.size() / in_size;
  std::vector<std::byte> out(count * out_size);
  for (size_t i = 0; i < count; ++i) {
    const double value = read_element(in.data() + i * in_size, from);
    if (!write_element(out.data() + i * out_size, value, to))
      throw DataError("{}: {} is too large for {}; keep a wider type", origin, value,
                      dtype_name(to));
  }
  return out;
}

}  // namespace mm::ckpt
