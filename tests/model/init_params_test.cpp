#include "lib/model/init_params.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

using namespace mm::model;

TEST_CASE("initial_value is a function of seed, name and element only") {
  const ParamSpec spec{.name = "a.weight", .shape = {8, 16}};
  CHECK(at::equal(initial_value(spec, 3), initial_value(spec, 3)));
  CHECK(!at::equal(initial_value(spec, 3), initial_value(spec, 4)));
  ParamSpec other = spec;
  other.name = "b.weight";
  CHECK(!at::equal(initial_value(spec, 3), initial_value(other, 3)));
  ParamSpec shorter = spec;
  shorter.shape = {4, 16};
  CHECK(at::equal(initial_value(spec, 3).narrow(0, 0, 4), initial_value(shorter, 3)));
}

TEST_CASE("initial_value has the spread that the parameter declares") {
  const at::Tensor normal = initial_value({.name = "n", .shape = {200, 100}, .init_std = 0.5}, 1);
  CHECK(normal.mean().item<double>() == doctest::Approx(0).epsilon(0.02));
  CHECK(normal.std().item<double>() == doctest::Approx(0.5).epsilon(0.02));
  const at::Tensor xavier =
      initial_value({.name = "x", .shape = {100, 50}, .init = Init::kXavierUniform}, 1);
  CHECK(xavier.abs().max().item<double>() == doctest::Approx(0.2).epsilon(0.02));
  CHECK(initial_value({.name = "z", .shape = {3}, .init = Init::kZeros}, 1)
            .abs()
            .sum()
            .item<double>() == 0);
  CHECK(initial_value({.name = "o", .shape = {3}, .init = Init::kOnes}, 1).sum().item<double>() ==
        3);
}
