#include "lib/optim/initial_draw.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/std.h>
#include <doctest/doctest.h>

#include <cmath>

#include "lib/base/error.h"
#include "lib/dist/thread_group.h"
#include "lib/optim/param_store.h"
#include "tests/optim/toy_params.h"

namespace mm::optim {
namespace {

model::ParamSpec linear(std::vector<int64_t> shape, model::Init init) {
  model::ParamSpec spec = toy_param("linear.weight", std::move(shape), model::Part::kLanguage);
  spec.init = init;
  return spec;
}

at::Tensor whole(const model::ParamSpec& spec, uint64_t seed, at::ScalarType dtype = at::kFloat) {
  at::Tensor out = at::empty(spec.shape, dtype);
  InitialDraw(spec, seed).fill(out);
  return out;
}

}  // namespace

TEST_CASE("C36: slices of 2 and 4 differ from one another and join to the same 8x4 matrix") {
  const model::ParamSpec spec = linear({8, 4}, model::Init::kNormal);
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

TEST_CASE("C36: all data ranks start with bit-equal copies") {
  const model::Model model = toy_model();
  dist::run_thread_ranks(2, {.timeout = std::chrono::seconds(20)}, [&](dist::Group& group) {
    ParamStore store(model, Precision{});
    store.initialise(7);
    for (size_t i = 0; i < model.params.size(); ++i) {
      const at::Tensor mine = store.master(static_cast<model::ParamId>(i)).reshape({-1});
      at::Tensor all = at::empty({2 * mine.numel()}, at::kFloat);
      group.all_gather(all, mine);
      REQUIRE(all.narrow(0, 0, mine.numel()).equal(all.narrow(0, mine.numel(), mine.numel())));
    }
  });
}

TEST_CASE(
    "C37: the spread of Xavier's initialiser comes from the full shape, whatever the slices") {
  const model::ParamSpec spec = linear({32, 4096}, model::Init::kXavierUniform);
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
  model::ParamSpec spec = linear({300, 300}, model::Init::kNormal);
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
  const model::ParamSpec spec =
      linear({70, 1000}, model::Init::kNormal);  // more than one thread's chunk
  CHECK(whole(spec, 3, at::kDouble).to(at::kFloat).equal(whole(spec, 3)));
}

TEST_CASE("zeros, ones, empty tensors and convolutions") {
  CHECK(whole(linear({3}, model::Init::kZeros), 1).eq(0).all().item<bool>());
  CHECK(whole(linear({3}, model::Init::kOnes), 1).eq(1).all().item<bool>());
  CHECK(whole(linear({0, 4}, model::Init::kNormal), 1).numel() == 0);
  // Fans of a convolution count its kernel: 6 / ((8 + 3) * 4 * 4).
  const at::Tensor convolution = whole(linear({8, 3, 4, 4}, model::Init::kXavierUniform), 1);
  CHECK(convolution.abs().max().item<double>() <= std::sqrt(6.0 / (11 * 16)));
  CHECK(convolution.abs().max().item<double>() > 0.9 * std::sqrt(6.0 / (11 * 16)));
  CHECK_THROWS_AS(InitialDraw(linear({3}, model::Init::kXavierUniform), 1), InternalError);
}

}  // namespace mm::optim
