#include "lib/model/activations.h"

#include "tests/model/operation_check.h"

using namespace mm::model;
using namespace mm::model::test;

TEST_CASE("swiglu equals silu(gate) * up, forward and backward, for every dtype") {
  const auto check = [](at::ScalarType dtype, double tolerance) {
    check_same([](const auto& x) { return swiglu(x[0], x[1]); },
               [](const auto& x) { return swiglu_reference(x[0], x[1]); },
               {draw({33, 17}, dtype) * 3, draw({33, 17}, dtype, 2)}, tolerance);
  };
  check(at::kDouble, 1e-14);
  check(at::kFloat, 1e-6);
  check(at::kBFloat16, 1e-2);
}

TEST_CASE("quick_gelu equals x * sigmoid(1.702 x), forward and backward, for every dtype") {
  const auto check = [](at::ScalarType dtype, double tolerance) {
    check_same([](const auto& x) { return quick_gelu(x[0]); },
               [](const auto& x) { return quick_gelu_reference(x[0]); },
               {draw({3, 5, 19}, dtype) * 4}, tolerance);
  };
  check(at::kDouble, 1e-14);
  check(at::kFloat, 1e-6);
  check(at::kBFloat16, 1e-2);
}

TEST_CASE("gelu_tanh equals LibTorch's, forward and backward, for every dtype") {
  const auto check = [](at::ScalarType dtype, double tolerance) {
    check_same([](const auto& x) { return gelu_tanh(x[0]); },
               [](const auto& x) { return at::gelu(x[0], "tanh"); }, {draw({3, 5, 19}, dtype) * 3},
               tolerance);
  };
  check(at::kDouble, 1e-13);
  check(at::kFloat, 2e-6);
  check(at::kBFloat16, 1e-2);
  CHECK((gelu_tanh(at::ones({2}, at::kHalf)).scalar_type() == at::kHalf));
}

TEST_CASE("activations stay finite and right far from zero") {
  const at::Tensor x = at::tensor({-1e4, -120.0, -88.5, 0.0, 88.5, 120.0, 1e4}, at::kFloat);
  const at::Tensor one = at::ones_like(x);
  CHECK(at::allclose(swiglu(x, one), at::silu(x), 1e-6, 1e-30));
  CHECK(at::allclose(quick_gelu(x), quick_gelu_reference(x), 1e-6, 1e-30));
}

TEST_CASE("activations of nothing are nothing") {
  const at::Tensor none = at::empty({0, 8}, at::kFloat);
  CHECK(swiglu(none, none).numel() == 0);
  CHECK(quick_gelu(none).numel() == 0);
}
