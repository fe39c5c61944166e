#include "lib/model/products.h"

#include <ATen/ATen.h>

#include "tests/model/operation_check.h"

using namespace mm::model;
using namespace mm::model::test;

TEST_CASE("linear_product equals LibTorch's linear, forward and backward, in every dtype") {
  const auto check = [](at::ScalarType dtype, double tolerance) {
    check_same([](const auto& x) { return linear_product(x[0], x[1], x[2]); },
               [](const auto& x) { return at::linear(x[0], x[1], x[2]); },
               {draw({3, 20, 24}, dtype), draw({17, 24}, dtype, 2), draw({17}, dtype, 3)},
               tolerance);
    check_same([](const auto& x) { return linear_product(x[0], x[1], {}); },
               [](const auto& x) { return at::linear(x[0], x[1]); },
               {draw({40, 24}, dtype), draw({17, 24}, dtype, 2)}, tolerance);
  };
  check(at::kDouble, 1e-14);
  check(at::kFloat, 1e-6);
  check(at::kBFloat16, 1e-2);
}

TEST_CASE("linear_product of a bf16 row rounds once, whichever way it is taken") {
  const at::Tensor x = draw({64, 33}, at::kBFloat16), w = draw({9, 33}, at::kBFloat16, 2);
  const at::Tensor want = at::linear(x.to(at::kFloat), w.to(at::kFloat)).to(at::kBFloat16);
  CHECK(relative(linear_product(x, w, {}), want) < 5e-3);
}

TEST_CASE("linear_product: no rows, and a frozen side without a gradient") {
  const at::Tensor w = draw({9, 33}, at::kBFloat16, 2).requires_grad_();
  CHECK(linear_product(at::empty({0, 33}, at::kBFloat16), w, {}).size(0) == 0);
  const at::Tensor frozen = w.detach(), x = draw({64, 33}, at::kBFloat16).requires_grad_();
  const at::Tensor y = linear_product(x, frozen, {});
  CHECK((torch::autograd::grad({y.sum()}, {x})[0].scalar_type() == at::kBFloat16));
  CHECK(torch::autograd::grad({linear_product(x.detach(), w, {}).sum()}, {w})[0].sizes() ==
        w.sizes());
}
