#include "lib/model/initial_draw.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/std.h>
#include <doctest/doctest.h>

#include <cmath>

#include "lib/base/error.h"

namespace mm::model {
namespace {

ParamSpec linear(std::vector<int64_t> shape, Init init) {
  return {.name = "linear.weight", .shape = std::move(shape), .init = init, .init_std = 0.02};
}

at::Tensor whole(const ParamSpec& spec, uint64_t seed, at::ScalarType dtype = at::kFloat) {
  at::Tensor out = at::empty(spec.shape, dtype);
  InitialDraw(spec, seed).fill(out);
  return out;
}

}  // namespace

TEST_CASE("C36: slices of 2 and 4 differ from one another and join to the same 8x4 matrix") {
  const ParamSpec spec = linear({8, 4}, Init::kNormal);
  const at::Tensor full = whole(spec, 7);
  for (const int64_t dim : {0, 1}) {
    for (const int64_t ranks : {1, 2, 4}) {
      const int64_t rows = spec.shape[static_cast<size_t>(dim)] / ranks;
      std::vector<at::Tensor> slices;
      for (int64_t r = 0; r < ranks; ++r)
        slices.push_back(InitialDraw(spec, 7).slice(dim, r * rows, rows, at::kFloat));
      CHECK(at::cat(slices, dim).equal(full));
      for (size_t r = 1; r < slices.size(); ++r) CHECK_FALSE(slices[r].equal(slices[0]));
    }
  }
}

TEST_CASE(
    "C37: the spread of Xavier's initialiser comes from the full shape, whatever the slices") {
  const ParamSpec spec = linear({32, 4096}, Init::kXavierUniform);
  const double want = std::sqrt(2.0 / (4096 + 32));
  CHECK(want == doctest::Approx(0.02201).epsilon(1e-3));
  CHECK(whole(spec, 7).std().item<double>() == doctest::Approx(want).epsilon(0.02));
  for (int64_t r = 0; r < 4; ++r) {
    const at::Tensor slice = InitialDraw(spec, 7).slice(1, r * 1024, 1024, at::kFloat);
    CHECK(slice.std().item<double>() == doctest::Approx(want).epsilon(0.02));
    CHECK(slice.abs().max().item<double>() <= std::sqrt(6.0 / (4096 + 32)));
  }
}

TEST_CASE("a normal draw has mean 0 and the declared spread, seeds and names give other values") {
  ParamSpec spec = linear({300, 300}, Init::kNormal);
  spec.init_std = 0.02;
  const at::Tensor values = whole(spec, 1);
  CHECK(std::abs(values.mean().item<double>()) < 4 * 0.02 / 300);
  CHECK(values.std().item<double>() == doctest::Approx(0.02).epsilon(0.02));
  CHECK(values.equal(whole(spec, 1)));
  CHECK_FALSE(values.equal(whole(spec, 2)));
  spec.name = "other.weight";
  CHECK_FALSE(values.equal(whole(spec, 1)));
}

TEST_CASE("fp32 values are the float64 values rounded once") {
  const ParamSpec spec = linear({70, 1000}, Init::kNormal);  // more than one thread's chunk
  CHECK(whole(spec, 3, at::kDouble).to(at::kFloat).equal(whole(spec, 3)));
}

TEST_CASE("zeros, ones, empty tensors and convolutions") {
  CHECK(whole(linear({3}, Init::kZeros), 1).eq(0).all().item<bool>());
  CHECK(whole(linear({3}, Init::kOnes), 1).eq(1).all().item<bool>());
  CHECK(whole(linear({0, 4}, Init::kNormal), 1).numel() == 0);
  // Fans of a convolution count its kernel: 6 / ((8 + 3) * 4 * 4).
  const at::Tensor convolution = whole(linear({8, 3, 4, 4}, Init::kXavierUniform), 1);
  CHECK(convolution.abs().max().item<double>() <= std::sqrt(6.0 / (11 * 16)));
  CHECK(convolution.abs().max().item<double>() > 0.9 * std::sqrt(6.0 / (11 * 16)));
  CHECK_THROWS_AS(InitialDraw(linear({3}, Init::kXavierUniform), 1), InternalError);
}

}  // namespace mm::model
