#include "kernels/cast_bf16.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

using namespace mm::kernels;

namespace {

uint16_t cpu(float value) {
  uint16_t bits = 0;
  cast_bf16_cpu(&value, &bits, 1);
  return bits;
}

uint16_t reference(float value) {
  uint16_t bits = 0;
  cast_bf16_reference(&value, &bits, 1);
  return bits;
}

}  // namespace

TEST_CASE("cast_bf16: ties go to even, overflow to infinity, NaN stays NaN") {
  CHECK(cpu(1.0f) == 0x3f80);
  CHECK(cpu(std::bit_cast<float>(0x3f808000u)) == 0x3f80);  // half way, even below
  CHECK(cpu(std::bit_cast<float>(0x3f818000u)) == 0x3f82);  // half way, even above
  CHECK(cpu(-0.0f) == 0x8000);
  CHECK(cpu(std::numeric_limits<float>::max()) == 0x7f80);
  CHECK(cpu(-std::numeric_limits<float>::infinity()) == 0xff80);
  CHECK((cpu(std::numeric_limits<float>::quiet_NaN()) & 0x7fff) > 0x7f80);
  CHECK((cpu(std::bit_cast<float>(0x7f800001u)) & 0x7fff) > 0x7f80);
}

TEST_CASE("cast_bf16: the CPU twin equals the reference on every exponent and rounding pattern") {
  for (uint32_t high = 0; high < 0x10000; ++high) {
    for (uint32_t low : {0x0000u, 0x0001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      const auto value = std::bit_cast<float>(high << 16 | low);
      if (std::isnan(value)) continue;
      REQUIRE_MESSAGE(cpu(value) == reference(value), value);
    }
  }
}

TEST_CASE("cast_bf16: zero elements touch nothing") {
  uint16_t guard = 7;
  cast_bf16_cpu(nullptr, &guard, 0);
  CHECK(guard == 7);
}
