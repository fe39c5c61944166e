#include "lib/model/diffusion_parts.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "tests/model/operation_check.h"
#include "tests/model/tiny_diffusion.h"

using namespace mm;
using namespace mm::model;
using namespace mm::model::test;

TEST_CASE("unfolded patches times the weight are the convolution") {
  const at::Tensor x = draw({2, 3, 6, 4}), weight = draw({5, 3, 2, 2}, at::kDouble, 2);
  const at::Tensor want = at::conv2d(x, weight, {}, 2).flatten(2).transpose(1, 2);
  CHECK(at::allclose(at::matmul(unfold_patches(x, 2), weight.flatten(1).t()), want));
  CHECK_THROWS_WITH_AS(unfold_patches(draw({1, 3, 6, 5}), 2), doctest::Contains("6 x 5"),
                       DataError);
}

TEST_CASE("folding puts (row, column, patch row, patch column, channel) back in place") {
  const at::Tensor x = draw({2, 3, 6, 4});
  // The same numbers with the channel last inside a patch.
  const at::Tensor tokens =
      unfold_patches(x, 2).view({2, 6, 3, 4}).transpose(2, 3).reshape({2, 6, 12});
  CHECK(at::equal(fold_patches(tokens, 2, 3, 2), x));
  CHECK(fold_patches(tokens.narrow(0, 0, 0), 2, 3, 2).sizes() == at::IntArrayRef({0, 3, 6, 4}));
}

TEST_CASE("parts of a modulation are its rows, one picture after another") {
  const auto parts = modulation_parts(at::arange(12, at::kDouble).view({1, 12}), 3);
  CHECK(parts.size() == 3);
  CHECK(at::equal(parts[1].flatten(), at::arange(4, 8, at::kDouble)));
  CHECK(modulation_parts(at::empty({0, 12}), 3)[0].sizes() == at::IntArrayRef({0, 1, 4}));
}

TEST_CASE("an input without pictures has everything that a family reads") {
  for (const DiffusionConfig& config : tiny_families()) {
    const DiffusionInput in = diffusion_input(config, tiny_objective(config), Batch());
    CHECK(in.times.numel() == 0);
    CHECK(in.clean.size(1) == config.in_channels);
    CHECK((config.family != DiffusionFamily::kSd3 || in.sigmas.defined()));
  }
}

TEST_CASE("times follow from sigmas; what is missing is said") {
  Batch batch;
  auto in = std::make_shared<DiffusionInput>();
  in->noisy = draw({2, 4, 4, 4});
  in->sigmas = at::tensor({.5, .25}, at::kDouble);
  batch.diffusion = in;
  const Objective flow{.prediction = Prediction::kVelocity};
  CHECK_THROWS_WITH_AS(diffusion_input(tiny_dit(), flow, batch), doctest::Contains("labels"),
                       InternalError);
  in->labels = at::zeros({2}, at::kLong);
  CHECK(at::equal(diffusion_input(tiny_dit(), flow, batch).times,
                  at::tensor({500., 250.}, at::kDouble)));
  in->sigmas = at::Tensor();
  CHECK_THROWS_AS(diffusion_input(tiny_dit(), flow, batch), InternalError);
}
