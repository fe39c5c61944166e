#include "lib/model/norms.h"

#include "tests/model/operation_check.h"

using namespace mm::model;
using namespace mm::model::test;

TEST_CASE(
    "rms_norm equals the plain operations, forward and backward, in float64, float32 and bf16") {
  const auto check = [](at::ScalarType dtype, double tolerance) {
    const std::vector<at::Tensor> inputs{draw({37, 24}, dtype), draw({24}, dtype, 2)};
    check_same([](const auto& x) { return rms_norm(x[0], x[1], 1e-5); },
               [](const auto& x) { return rms_norm_reference(x[0], x[1], 1e-5); }, inputs,
               tolerance);
  };
  check(at::kDouble, 1e-14);
  check(at::kFloat, 1e-6);
  check(at::kBFloat16, 1e-2);
}

TEST_CASE("rms_norm keeps leading dimensions and takes an odd width and strided rows") {
  const at::Tensor x = draw({3, 7, 2, 5}).transpose(1, 2), w = draw({5});
  CHECK(relative(rms_norm(x, w, 1e-6), rms_norm_reference(x, w, 1e-6)) < 1e-14);
}

TEST_CASE("rms_norm of no rows gives no rows and a zero weight gradient") {
  const at::Tensor x = at::empty({0, 6}, at::kDouble).requires_grad_(),
                   w = draw({6}).requires_grad_();
  const at::Tensor y = rms_norm(x, w, 1e-6);
  CHECK(y.sizes() == x.sizes());
  const auto g = torch::autograd::grad({y}, {x, w}, {at::zeros_like(y)});
  CHECK(g[1].abs().sum().item<double>() == 0);
}

TEST_CASE("rms_norm uses the weight as it is: ones give rows of mean square one") {
  const at::Tensor y = rms_norm(draw({9, 32}) * 7, at::ones({32}, at::kDouble), 0.0);
  CHECK(relative(y.square().mean(-1), at::ones({9}, at::kDouble)) < 1e-14);
}

TEST_CASE("residual_rms_norm equals sum and norm, forward and backward, whichever output is used") {
  const auto check = [](at::ScalarType dtype, double tolerance) {
    const std::vector<at::Tensor> inputs{draw({70, 24}, dtype), draw({70, 24}, dtype, 2),
                                         draw({24}, dtype, 3)};
    const auto both = [](const SumAndNorm& n) { return at::cat({n.sum, n.norm}); };
    const auto plain = [](const auto& x) {
      const at::Tensor sum = x[0] + x[1];
      return SumAndNorm{sum, rms_norm_reference(sum, x[2], 1e-5)};
    };
    check_same([&](const auto& x) { return both(residual_rms_norm(x[0], x[1], x[2], 1e-5)); },
               [&](const auto& x) { return both(plain(x)); }, inputs, tolerance);
    check_same([&](const auto& x) { return residual_rms_norm(x[0], x[1], x[2], 1e-5).norm; },
               [&](const auto& x) { return plain(x).norm; }, inputs, tolerance);
  };
  check(at::kDouble, 1e-14);
  check(at::kFloat, 1e-6);
  check(at::kBFloat16, 2e-2);
}
