#include "lib/ckpt/float_cast.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "lib/base/error.h"

using namespace mm::ckpt;

namespace {

template <typename T>
std::vector<std::byte> packed(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <typename T>
std::vector<T> unpacked(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<uint16_t> all_bits() {
  std::vector<uint16_t> bits;
  for (int i = 0; i < 65536; ++i) bits.push_back(static_cast<uint16_t>(i));
  return bits;
}

uint16_t half_of(double value) {
  return unpacked<uint16_t>(cast_floats(packed<double>({value}), DType::kF64, DType::kF16, "t"))[0];
}

}  // namespace

TEST_CASE("cast_floats: every 16-bit value comes back from fp32 with its bits") {
  for (const DType narrow : {DType::kF16, DType::kBF16}) {
    const auto wide = cast_floats(packed(all_bits()), narrow, DType::kF32, "t");
    const auto back = unpacked<uint16_t>(cast_floats(wide, DType::kF32, narrow, "t"));
    const auto values = unpacked<float>(wide);
    for (size_t i = 0; i < back.size(); ++i)
      REQUIRE((std::isnan(values[i]) || back[i] == static_cast<uint16_t>(i)));
  }
}

TEST_CASE("cast_floats: known halves, ties to even, subnormals") {
  CHECK(half_of(1.0) == 0x3C00);
  CHECK(half_of(-2.0) == 0xC000);
  CHECK(half_of(65504) == 0x7BFF);
  CHECK(half_of(1.0 + std::ldexp(1, -11)) == 0x3C00);      // a tie: down to the even neighbour
  CHECK(half_of(1.0 + 3 * std::ldexp(1, -11)) == 0x3C02);  // a tie: up to the even neighbour
  CHECK(half_of(std::ldexp(1, -24)) == 0x0001);
  CHECK(half_of(std::ldexp(1, -25)) == 0x0000);
  CHECK(half_of(2047 * std::ldexp(1, -25)) == 0x0400);  // a subnormal rounds up to a normal
}

TEST_CASE("cast_floats: bf16 of fp32 equals rounding of its upper half") {
  std::vector<float> values;
  for (uint32_t i = 0; i < 4096; ++i) {
    const uint32_t bits = 0x3F000000 + i * 977;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    values.push_back(value);
  }
  const auto got = unpacked<uint16_t>(cast_floats(packed(values), DType::kF32, DType::kBF16, "t"));
  for (size_t i = 0; i < values.size(); ++i) {
    uint32_t bits;
    std::memcpy(&bits, &values[i], sizeof bits);
    REQUIRE(got[i] == static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16));
  }
}

TEST_CASE("cast_floats: infinity and NaN stay, a finite value that does not fit is refused") {
  CHECK(half_of(std::numeric_limits<double>::infinity()) == 0x7C00);
  CHECK((half_of(std::nan("")) & 0x7FFF) > 0x7C00);
  CHECK_THROWS_WITH_AS(half_of(65520), doctest::Contains("too large for F16"), mm::DataError);
  CHECK_THROWS_AS(cast_floats(packed<double>({1e300}), DType::kF64, DType::kF32, "t"),
                  mm::DataError);
}
