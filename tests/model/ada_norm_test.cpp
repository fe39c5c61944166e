#include "lib/model/ada_norm.h"

#include <ATen/Parallel.h>

#include "tests/model/operation_check.h"

using namespace mm::model;
using namespace mm::model::test;

namespace {

/// x [N, P, h], f the same, and a modulation [N, 3 h] whose parts are views.
std::vector<at::Tensor> inputs(int64_t pictures, int64_t rows, int64_t width,
                               at::ScalarType dtype) {
  return {draw({pictures, rows, width}, dtype), draw({pictures, 3 * width}, dtype, 2) * 0.3,
          draw({pictures, rows, width}, dtype, 3)};
}

std::vector<at::Tensor> parts(const at::Tensor& modulation) {
  return modulation.view({modulation.size(0), 3, modulation.size(1) / 3}).split(1, 1);
}

}  // namespace

TEST_CASE("a modulated norm and a gated sum are what their formulas say") {
  check_same(
      [](const std::vector<at::Tensor>& in) {
        return gated_add(in[0], in[3], modulated_norm(in[0], in[1], in[2], 1e-6));
      },
      [](const std::vector<at::Tensor>& in) {
        const at::Tensor mean = in[0].mean(-1, true),
                         variance = (in[0] - mean).square().mean(-1, true);
        const at::Tensor normed = (in[0] - mean) / (variance + 1e-6).sqrt();
        return in[0] + in[3] * (normed * (1 + in[2]) + in[1]);
      },
      {draw({2, 3, 8}), draw({2, 1, 8}, at::kDouble, 2), draw({2, 1, 8}, at::kDouble, 3),
       draw({2, 1, 8}, at::kDouble, 4)},
      1e-12);
}

TEST_CASE("norm and gate on views of one modulation equal plain operations, for every dtype") {
  const auto fused = [](const std::vector<at::Tensor>& in) {
    const auto m = parts(in[1]);
    return gated_add(in[2], m[2], modulated_norm(in[0], m[0], m[1], 1e-6));
  };
  const auto plain = [](const std::vector<at::Tensor>& in) {
    const auto m = parts(in[1]);
    return gated_add_reference(in[2], m[2], modulated_norm_reference(in[0], m[0], m[1], 1e-6));
  };
  for (const int64_t rows : {1, 64, 150}) {
    CAPTURE(rows);
    check_same(fused, plain, inputs(3, rows, 40, at::kDouble), 1e-12);
    check_same(fused, plain, inputs(3, rows, 40, at::kFloat), 3e-6);
    check_same(fused, plain, inputs(3, rows, 40, at::kBFloat16), 3e-2);
  }
}

TEST_CASE("the fused norm and gate give the same bits with one thread and with two") {
  const auto run = [](int threads) {
    at::set_num_threads(threads);
    const auto in = inputs(2, 200, 24, at::kFloat);
    std::vector<at::Tensor> leaves;
    for (const at::Tensor& x : in) leaves.push_back(x.detach().clone().requires_grad_());
    const auto m = parts(leaves[1]);
    const at::Tensor y = gated_add(leaves[2], m[2], modulated_norm(leaves[0], m[0], m[1], 1e-6));
    auto results = torch::autograd::grad({y}, leaves, {in[2]});
    results.push_back(y.detach());
    return results;
  };
  const int before = at::get_num_threads();
  const auto one = run(1), two = run(2);
  at::set_num_threads(before);
  for (size_t i = 0; i < one.size(); ++i) CHECK(at::equal(one[i], two[i]));
}

TEST_CASE("norm and gate of no picture, of no row, and of a part in another dtype") {
  const at::Tensor none = at::zeros({0, 5, 8}), no_rows = at::zeros({2, 0, 8});
  CHECK(modulated_norm(none, at::zeros({0, 1, 8}), at::zeros({0, 1, 8}), 1e-6).sizes() ==
        none.sizes());
  CHECK(gated_add(no_rows, at::zeros({2, 1, 8}), no_rows).sizes() == no_rows.sizes());
  const at::Tensor x = draw({2, 3, 8}, at::kFloat), wide = draw({2, 1, 8});
  CHECK(at::allclose(gated_add(x, wide.to(at::kFloat), x),
                     gated_add(x.to(at::kDouble), wide, x.to(at::kDouble)).to(at::kFloat)));
  CHECK(
      (gated_add(x.to(at::kHalf), wide.to(at::kHalf), x.to(at::kHalf)).scalar_type() == at::kHalf));
}
