#include "lib/ckpt/value_scan.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/ckpt/two_rank_save.h"

using namespace mm::ckpt;

TEST_CASE("value scan: every half precision pattern is judged like its exponent and mantissa say") {
  std::vector<std::byte> all(1 << 17);
  for (size_t i = 0; i < 1 << 16; ++i) {
    all[2 * i] = static_cast<std::byte>(i & 0xFF);
    all[2 * i + 1] = static_cast<std::byte>(i >> 8);
  }
  const ValueCounts half = scan_values(DType::kF16, all), brain = scan_values(DType::kBF16, all);
  CHECK(half.infinite == 2);
  CHECK(half.nan == 2 * 1023);
  CHECK(brain.infinite == 2);
  CHECK(brain.nan == 2 * 127);
  CHECK(scan_values(DType::kI16, all).total() == 0);
}

TEST_CASE("value scan: floats at any alignment, largest and smallest ones are fine") {
  const float most = std::numeric_limits<float>::max(),
              least = std::numeric_limits<float>::denorm_min();
  std::vector<std::byte> bytes =
      mm::ckpt::test::floats({0.F, -0.F, most, -most, least, std::nanf(""), -HUGE_VALF});
  bytes.insert(bytes.begin(), std::byte{0xFF});
  const ValueCounts counts = scan_values(DType::kF32, std::span(bytes).subspan(1));
  CHECK(counts.nan == 1);
  CHECK(counts.infinite == 1);
  CHECK(scan_values(DType::kF32, {}).total() == 0);
}

TEST_CASE("value scan: counts add") {
  ValueCounts sum{1, 2, 3};
  sum += {10, 20, 30};
  CHECK(sum.nan == 11);
  CHECK(sum.infinite == 22);
  CHECK(sum.bad_bool == 33);
  CHECK(sum.total() == 66);
}
