#include "lib/model/rows.h"

#include "lib/base/error.h"
#include "tests/model/operation_check.h"

using namespace mm::model;
using namespace mm::model::test;

TEST_CASE("select_rows equals index_select, forward and backward") {
  const at::Tensor index = at::tensor({4, 0, 2}, at::kLong);
  check_same([&](const auto& x) { return select_rows(x[0], index); },
             [&](const auto& x) { return x[0].index_select(0, index); }, {draw({5, 3})}, 0);
}

TEST_CASE("replace_rows equals index_copy, forward and backward, with and without rows") {
  const at::Tensor some = at::tensor({3, 1}, at::kLong), none = at::empty({0}, at::kLong);
  const auto check = [](const at::Tensor& index) {
    check_same([&](const auto& x) { return replace_rows(x[0], index, x[1]); },
               [&](const auto& x) { return x[0].index_copy(0, index, x[1]); },
               {draw({5, 3}), draw({index.size(0), 3}, at::kDouble, 2)}, 0);
  };
  check(some);
  check(none);
  CHECK_THROWS_AS(replace_rows(draw({5, 3}), some, draw({3, 3})), mm::InternalError);
}

TEST_CASE("a padded permutation and its way back are the identity with the identity's gradient") {
  const at::Tensor gather = at::tensor({2, 3, 4, 0, 1, 1}, at::kLong),
                   inverse = at::tensor({3, 4, 0, 1, 2}, at::kLong);
  check_same(
      [&](const auto& x) {
        return unpermute_rows(permute_rows(x[0], gather, inverse), gather, inverse);
      },
      [](const auto& x) { return x[0].clone(); }, {draw({5, 2, 3})}, 0);
}

TEST_CASE("unpermute_rows gives padding rows a gradient of zero") {
  const at::Tensor gather = at::tensor({0, 1, 1}, at::kLong),
                   inverse = at::tensor({0, 1}, at::kLong);
  const at::Tensor padded = draw({3, 2}).requires_grad_();
  const at::Tensor out = unpermute_rows(padded, gather, inverse);
  const at::Tensor g = torch::autograd::grad({out}, {padded}, {at::ones_like(out)})[0];
  CHECK(g[2].abs().sum().item<double>() == 0);
  CHECK(g[0].sum().item<double>() == 2);
}
