#include "lib/model/rope.h"

#include <algorithm>
#include <cmath>

#include "tests/model/operation_check.h"

using namespace mm::model;
using namespace mm::model::test;

TEST_CASE("rope equals the plain operations, forward and backward, for every dtype") {
  const at::Tensor positions = at::tensor({0, 1, 2, 0, 1, 2, 3, 900}, at::kLong);
  const auto check = [&](at::ScalarType dtype, double tolerance) {
    const RopeAngles angles = rope_angles(positions, 6, 1e4, dtype == at::kDouble);
    check_same([&](const auto& x) { return rope(x[0], angles); },
               [&](const auto& x) { return rope_reference(x[0], angles); },
               {draw({8, 3, 6}, dtype)}, tolerance);
  };
  check(at::kDouble, 1e-14);
  check(at::kFloat, 1e-6);
  check(at::kBFloat16, 1e-2);
}

TEST_CASE("rope turns halves, not neighbours, by position * theta^(-2i/D)") {
  const at::Tensor x = at::zeros({1, 1, 4}, at::kDouble);
  x[0][0][1] = 1.0;
  const at::Tensor y = rope(x, rope_angles(at::tensor({3}, at::kLong), 4, 100.0, true))[0][0];
  const double angle = 3 * std::pow(100.0, -0.5);
  CHECK(y[1].item<double>() == doctest::Approx(std::cos(angle)));
  CHECK(y[3].item<double>() == doctest::Approx(std::sin(angle)));
  CHECK(y[0].item<double>() == 0);
  CHECK(y[2].item<double>() == 0);
}

TEST_CASE("rope makes scores depend on the distance of positions only") {
  const at::Tensor q = draw({1, 1, 8}), k = draw({1, 1, 8}, at::kDouble, 2);
  const auto score = [&](int64_t i, int64_t j) {
    const auto at_position = [](int64_t p) {
      return rope_angles(at::full({1}, p, at::kLong), 8, 1e4, true);
    };
    return (rope(q, at_position(i)) * rope(k, at_position(j))).sum().item<double>();
  };
  CHECK(score(7, 3) == doctest::Approx(score(104, 100)).epsilon(1e-12));
  CHECK(score(7, 3) != doctest::Approx(score(7, 4)));
}

TEST_CASE("rope_angles: linear scaling divides every frequency") {
  const at::Tensor far = at::tensor({800}, at::kLong), near = at::tensor({100}, at::kLong);
  const RopeScaling linear{.kind = RopeScaling::Kind::kLinear, .factor = 8};
  CHECK(relative(rope_angles(far, 16, 1e4, true, linear).sin,
                 rope_angles(near, 16, 1e4, true).sin) < 1e-12);
}

TEST_CASE("rope_angles: Llama 3's scaling keeps short waves, stretches long ones, blends between") {
  const RopeScaling scaling{.kind = RopeScaling::Kind::kLlama3,
                            .factor = 8,
                            .low_freq_factor = 1,
                            .high_freq_factor = 4,
                            .original_positions = 8192};
  const at::Tensor one = at::ones({1}, at::kLong);
  const at::Tensor plain = at::asin(rope_angles(one, 128, 5e5, true).sin)[0],
                   got = at::asin(rope_angles(one, 128, 5e5, true, scaling).sin)[0];
  int kept = 0, stretched = 0;
  for (int64_t i = 1; i < 64; ++i) {
    const double frequency = std::pow(5e5, -static_cast<double>(2 * i) / 128);
    const double wavelength = 2 * 3.14159265358979323846 / frequency;
    const double share = std::clamp((8192 / wavelength - 1) / 3, 0.0, 1.0);
    const double want = (1 - share) * frequency / 8 + share * frequency;
    CHECK(got[i].item<double>() == doctest::Approx(want).epsilon(1e-9));
    kept += share == 1 ? 1 : 0;
    stretched += share == 0 ? 1 : 0;
  }
  CHECK(kept > 20);
  CHECK(stretched > 20);
  CHECK(got[1].item<double>() == doctest::Approx(plain[1].item<double>()));
}

TEST_CASE("axis_rope_angles: equal positions are one position, sections take their own axis") {
  const at::Tensor positions = at::tensor({0, 5, 9}, at::kLong);
  const RopeAngles one = rope_angles(positions, 16, 1e4, true);
  const RopeAngles equal =
      axis_rope_angles({at::stack({positions, positions, positions}), {2, 3, 3}}, 16, 1e4, true);
  CHECK(at::equal(one.cos, equal.cos));
  CHECK(at::equal(one.sin, equal.sin));
  const at::Tensor zero = at::zeros_like(positions);
  const RopeAngles height =
      axis_rope_angles({at::stack({zero, positions, zero}), {2, 3, 3}}, 16, 1e4, true);
  CHECK(at::equal(height.sin.narrow(1, 2, 3), one.sin.narrow(1, 2, 3)));
  CHECK(height.sin.narrow(1, 0, 2).abs().max().item<double>() == 0);
  CHECK(height.sin.narrow(1, 5, 3).abs().max().item<double>() == 0);
}

TEST_CASE("grid_rope_angles: half of the pairs turn with the row, half with the column") {
  const at::Tensor row = at::tensor({3}, at::kLong), column = at::tensor({7}, at::kLong);
  const RopeAngles got = grid_rope_angles({row, column}, 8, 1e4, true);
  CHECK(at::equal(got.sin.narrow(1, 0, 2), rope_angles(row, 4, 1e4, true).sin));
  CHECK(at::equal(got.sin.narrow(1, 2, 2), rope_angles(column, 4, 1e4, true).sin));
}
