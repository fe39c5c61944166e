#pragma once
#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <vector>

#include "tests/model/tiny_llava.h"

namespace mm::model::test {

using Operation = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

/// Runs two versions of an operation on the same leaves: outputs and gradients of a random weighted
/// sum must agree to `tolerance`.
inline void check_same(const Operation& got, const Operation& want,
                       const std::vector<at::Tensor>& inputs, double tolerance) {
  const auto run = [&](const Operation& operation) {
    std::vector<at::Tensor> leaves;
    for (const at::Tensor& x : inputs) leaves.push_back(x.detach().clone().requires_grad_());
    at::Tensor out = operation(leaves);
    at::manual_seed(5);
    const at::Tensor weights = at::randn(out.sizes(), at::kDouble).to(out.scalar_type());
    auto results = torch::autograd::grad({out}, leaves, {weights});
    results.push_back(out.detach());
    return results;
  };
  const auto a = run(got), b = run(want);
  for (size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    REQUIRE(a[i].sizes() == b[i].sizes());
    CHECK((a[i].scalar_type() == b[i].scalar_type()));
    CHECK(relative(a[i], b[i]) <= tolerance);
  }
}

/// Seeded normal numbers.
inline at::Tensor draw(std::vector<int64_t> shape, at::ScalarType dtype = at::kDouble,
                       uint64_t seed = 1) {
  at::manual_seed(seed);
  return at::randn(shape, at::kDouble).to(dtype);
}

}  // namespace mm::model::test
