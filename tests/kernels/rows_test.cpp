#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "kernels/rms_norm.h"
#include "kernels/rope.h"
#include "kernels/swiglu.h"

using namespace mm::kernels;

namespace {

std::vector<float> ramp(int64_t count, float from, float to) {
  std::vector<float> x(count);
  for (int64_t i = 0; i < count; ++i)
    x[i] = from + (to - from) * static_cast<float>(i) / static_cast<float>(count - 1);
  return x;
}

}  // namespace

TEST_CASE(
    "the vector code's sigmoid is within 5e-7 of the exact one over the whole range of float") {
  const std::vector<float> x = ramp(200001, -80.0F, 80.0F), one(x.size(), 1.0F);
  std::vector<float> y(x.size());
  swiglu_forward<float>(static_cast<int64_t>(x.size()), x.data(), one.data(), y.data());
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double want = x[i] / (1 + std::exp(-double{x[i]}));
    if (want != 0) worst = std::max(worst, std::abs(y[i] - want) / std::abs(want));
  }
  CHECK(worst < 5e-7);
}

TEST_CASE("rows in one call or in several give the same bits, whatever the tail") {
  for (const int64_t cols : {1, 15, 16, 17, 64}) {
    CAPTURE(cols);
    const int64_t rows = 7;
    const std::vector<float> x = ramp(rows * cols, -2.0F, 3.0F),
                             w = ramp(std::max<int64_t>(cols, 2), 0.5F, 1.5F);
    std::vector<float> whole(x.size()), parts(x.size()), r(rows), r_parts(rows);
    const auto run = [&](int64_t first, int64_t count, float* y, float* scales) {
      rms_norm_forward<float>({count, cols}, {.x = x.data() + first * cols,
                                              .residual = nullptr,
                                              .w = w.data(),
                                              .eps = 1e-5,
                                              .sum = nullptr,
                                              .y = y + first * cols,
                                              .r = scales + first});
    };
    run(0, rows, whole.data(), r.data());
    for (int64_t row = 0; row < rows; ++row) run(row, 1, parts.data(), r_parts.data());
    CHECK(whole == parts);
    CHECK(r == r_parts);
  }
}

TEST_CASE("rotating there and back is the identity to rounding") {
  const RopeShape there{.tokens = 2, .heads = 3, .half = 5},
      back{.tokens = 2, .heads = 3, .half = 5, .direction = -1};
  const std::vector<float> x = ramp(60, -1.0F, 1.0F), angle = ramp(10, 0.0F, 6.0F);
  std::vector<float> cos, sin, y(60), z(60);
  for (float a : angle) {
    cos.push_back(std::cos(a));
    sin.push_back(std::sin(a));
  }
  rope<float>(there, x.data(), cos.data(), sin.data(), y.data());
  rope<float>(back, y.data(), cos.data(), sin.data(), z.data());
  for (size_t i = 0; i < x.size(); ++i) CHECK(z[i] == doctest::Approx(x[i]).epsilon(1e-5));
}

TEST_CASE("bf16 rows are read exactly and written rounded to nearest even") {
  // 1.0, -2.5 and 3.0 in bf16.
  const std::vector<Bf16> x{{0x3f80}, {0xc020}, {0x4040}}, one{{0x3f80}, {0x3f80}, {0x3f80}};
  std::vector<Bf16> y(3);
  std::vector<float> r(1);
  rms_norm_forward<Bf16>({1, 3}, {.x = x.data(),
                                  .residual = nullptr,
                                  .w = one.data(),
                                  .eps = 0.0,
                                  .sum = nullptr,
                                  .y = y.data(),
                                  .r = r.data()});
  CHECK(r[0] == doctest::Approx(1 / std::sqrt((1 + 6.25 + 9) / 3)));
  // r is 0x3edbfd91 in fp32; the nearest bf16 is 0x3edc.
  CHECK(y[0].bits == 0x3edc);
  CHECK((y[1].bits & 0x8000) != 0);
}
