#include "lib/model/cross_entropy.h"

#include "tests/model/operation_check.h"

using namespace mm::model;
using namespace mm::model::test;

TEST_CASE("linear_cross_entropy equals the plain loss, forward and backward, whatever the chunk") {
  const at::Tensor targets = at::tensor({1, 0, 10, 4, 4, 7, 2}, at::kLong);
  const auto check = [&](at::ScalarType dtype, double tolerance, int64_t elements) {
    check_same([&](const auto& x) { return linear_cross_entropy(x[0], x[1], targets, elements); },
               [&](const auto& x) { return linear_cross_entropy_reference(x[0], x[1], targets); },
               {draw({7, 5}, dtype) * 2, draw({11, 5}, dtype, 2)}, tolerance);
  };
  for (int64_t elements : {1, 11, 33, 1000}) {
    CAPTURE(elements);
    check(at::kDouble, 1e-14, elements);
    check(at::kFloat, 1e-6, elements);
    check(at::kBFloat16, 2e-2, elements);
  }
}

TEST_CASE("linear_cross_entropy: row weights multiply losses and gradients, row losses are plain") {
  const at::Tensor targets = at::tensor({1, 0, 10, 4, 4, 7, 2}, at::kLong),
                   weights = at::tensor({0.5, 1.0, 0.0, 2.0, 0.25, 1.0, 3.0}, at::kDouble);
  const auto reference = [&](const auto& x) {
    const at::Tensor chances = at::log_softmax(at::linear(x[0], x[1]), 1);
    return -(chances.gather(1, targets.unsqueeze(1)).squeeze(1) * weights).sum();
  };
  for (int64_t elements : {1, 33, 1000}) {
    const at::Tensor losses = at::empty({7}, at::kDouble);
    const auto weighted = [&](const auto& x) {
      return linear_cross_entropy(x[0], x[1], targets, elements, {weights, losses});
    };
    check_same(weighted, reference, {draw({7, 5}) * 2, draw({11, 5}, at::kDouble, 2)}, 1e-13);
    const at::Tensor hidden = draw({7, 5}) * 2, weight = draw({11, 5}, at::kDouble, 2);
    weighted(std::vector<at::Tensor>{hidden, weight});
    for (int64_t row = 0; row < 7; ++row) {
      const at::Tensor one = linear_cross_entropy_reference(hidden.narrow(0, row, 1), weight,
                                                            targets.narrow(0, row, 1));
      CHECK(losses[row].item<double>() == doctest::Approx(one.item<double>()).epsilon(1e-13));
    }
  }
}

TEST_CASE("linear_cross_entropy: small weights and a large loss scale meet in fp32, not in fp16") {
  // micro_mean: a row weighs 1 / targets, so its gradients are below fp16's least normal number,
  // 6e-5, until the scale is on them, which is above fp16's largest, 65504.
  const at::Tensor targets = at::arange(24, at::kLong),
                   weights = at::full({24}, 1.0 / 3000, at::kFloat);
  const auto gradients = [&](const at::Tensor& h, const at::Tensor& w, const at::Tensor& terms,
                             double seed) {
    const at::Tensor hidden = h.clone().requires_grad_(), weight = w.clone().requires_grad_();
    const at::Tensor loss = linear_cross_entropy(hidden, weight, targets, 99, {terms, {}});
    auto all =
        torch::autograd::grad({loss}, {hidden, weight}, {at::scalar_tensor(seed, loss.options())});
    CHECK((all[0].scalar_type() == h.scalar_type()));
    CHECK((all[1].scalar_type() == h.scalar_type()));
    return all;
  };
  for (const auto& [dtype, tolerance] :
       {std::pair(at::kHalf, 1e-3), std::pair(at::kBFloat16, 2e-2)}) {
    const at::Tensor hidden = draw({24, 64}, dtype) * 0.5, weight = draw({33, 64}, dtype, 2) * 0.5;
    for (const double seed : {65536.0, 65536.0 / 3}) {
      CAPTURE(seed);
      const auto got = gradients(hidden, weight, weights, seed),
                 want = gradients(hidden.to(at::kDouble), weight.to(at::kDouble),
                                  weights.to(at::kDouble), seed);
      for (size_t i = 0; i < got.size(); ++i) {
        const at::Tensor wide = got[i].to(at::kDouble);
        CHECK(relative(wide, want[i]) <= tolerance);
        // Roundings of many numbers cancel; that of one factor for all would not.
        const double share = ((wide * want[i]).sum() / want[i].square().sum()).item<double>();
        CHECK(share == doctest::Approx(1).epsilon(5e-4));
      }
    }
  }
}

TEST_CASE("linear_cross_entropy of huge logits is finite") {
  const at::Tensor hidden = draw({3, 4}, at::kFloat) * 1e4, weight = draw({9, 4}, at::kFloat, 2);
  CHECK(linear_cross_entropy(hidden, weight, at::tensor({0, 1, 2}, at::kLong), 9)
            .isfinite()
            .item<bool>());
}

TEST_CASE("linear_cross_entropy of no rows is zero with zero gradients") {
  const at::Tensor hidden = at::empty({0, 4}, at::kFloat).requires_grad_(),
                   weight = draw({9, 4}, at::kFloat).requires_grad_();
  const at::Tensor loss = linear_cross_entropy(hidden, weight, at::empty({0}, at::kLong), 100);
  CHECK(loss.item<float>() == 0);
  const auto g = torch::autograd::grad({loss}, {hidden, weight});
  CHECK(g[0].sizes() == hidden.sizes());
  CHECK(g[1].abs().sum().item<float>() == 0);
}

TEST_CASE("linear_cross_entropy: a frozen side costs no gradient, evaluation none at all") {
  const at::Tensor targets = at::tensor({1, 2}, at::kLong), hidden = draw({2, 4}).requires_grad_(),
                   weight = draw({9, 4});
  const at::Tensor loss = linear_cross_entropy(hidden, weight, targets, 100);
  CHECK(torch::autograd::grad({loss}, {hidden})[0].defined());
  const at::NoGradGuard no_grad;
  CHECK(!linear_cross_entropy(hidden, weight, targets, 100).requires_grad());
}
