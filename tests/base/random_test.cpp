#include "lib/base/random.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>

using mm::Philox;
using Block = std::array<uint32_t, 4>;

TEST_CASE("Philox: the known answers of Random123 for philox4x32-10") {
  CHECK(Philox(0).block(0) == Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(Philox(~uint64_t{0}).block(~uint64_t{0}, ~uint64_t{0}) ==
        Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(Philox(0x299f31d0a4093822).block(0x85a308d3243f6a88, 0x0370734413198a2e) ==
        Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("Philox: streams differ by seed, purpose and child, and repeat exactly") {
  const Philox stream(7, "init");
  CHECK(stream.u64(5) == Philox(7, "init").u64(5));
  CHECK(stream.key() != Philox(8, "init").key());
  CHECK(stream.key() != Philox(7, "shuffle").key());
  CHECK(stream.child(1).key() != stream.child(2).key());
  CHECK(stream.child("w").key() == stream.child("w").key());
  CHECK(stream.child(0).key() != stream.child(std::string_view("\0\0\0\0\0\0\0\0", 8)).key());
}

TEST_CASE("Philox: uniform lies in 0 to 1 with the mean and variance of a uniform") {
  const Philox stream(1, "test");
  constexpr int kCount = 20000;
  double sum = 0, squares = 0;
  for (int i = 0; i < kCount; ++i) {
    const double u = stream.uniform(i);
    REQUIRE(u >= 0.0);
    REQUIRE(u < 1.0);
    sum += u;
    squares += u * u;
  }
  const double mean = sum / kCount;
  CHECK(mean == doctest::Approx(0.5).epsilon(0.02));
  CHECK(squares / kCount - mean * mean == doctest::Approx(1.0 / 12).epsilon(0.03));
}

TEST_CASE("Philox: normal has mean 0, variance 1, kurtosis 3 and no correlation of neighbours") {
  const Philox stream(2, "test");
  constexpr int kCount = 40000;
  double sum = 0, squares = 0, fourth = 0, neighbours = 0, before = 0;
  for (int i = 0; i < kCount; ++i) {
    const double x = stream.normal(i);
    REQUIRE(std::isfinite(x));
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
    neighbours += x * before;
    before = x;
  }
  CHECK(std::abs(sum / kCount) < 0.02);
  CHECK(squares / kCount == doctest::Approx(1.0).epsilon(0.03));
  CHECK(fourth / kCount == doctest::Approx(3.0).epsilon(0.1));
  CHECK(std::abs(neighbours / kCount) < 0.02);
}

TEST_CASE("Philox: below stays under the bound and reaches all values") {
  const Philox stream(3, "test");
  std::array<int, 7> counts{};
  for (int i = 0; i < 7000; ++i) ++counts.at(stream.below(i, 7));
  for (const int count : counts) CHECK(std::abs(count - 1000) < 150);
  CHECK(stream.below(0, 1) == 0);
  CHECK(stream.below(1, uint64_t{1} << 63) < uint64_t{1} << 63);
}
