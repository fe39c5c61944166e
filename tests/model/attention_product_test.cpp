#include "lib/model/attention_product.h"

#include <cmath>
#include <limits>

#include "tests/model/operation_check.h"

using namespace mm::model;
using namespace mm::model::test;

namespace {

// By the definition, in float64.
at::Tensor by_formula(const std::vector<at::Tensor>& in, bool causal) {
  const int64_t group = in[0].size(1) / in[1].size(1);
  const auto wide = [](const at::Tensor& x) { return x.to(at::kDouble); };
  const at::Tensor k = wide(in[1]).repeat_interleave(group, 1),
                   v = wide(in[2]).repeat_interleave(group, 1);
  at::Tensor scores =
      at::matmul(wide(in[0]), k.transpose(2, 3)) / std::sqrt(static_cast<double>(k.size(3)));
  if (causal) {
    const at::Tensor later =
        at::ones({scores.size(2), scores.size(3)}, at::kBool).triu(/*diagonal=*/1);
    scores = scores.masked_fill(later, -std::numeric_limits<double>::infinity());
  }
  return at::matmul(scores.softmax(-1), v).to(in[0].scalar_type());
}

void check(at::ScalarType dtype, int64_t heads, bool causal, double tolerance) {
  CAPTURE(heads);
  CAPTURE(causal);
  check_same(
      [&](const std::vector<at::Tensor>& in) {
        return attention_product(in[0], in[1], in[2], {.causal = causal});
      },
      [&](const std::vector<at::Tensor>& in) { return by_formula(in, causal); },
      {draw({2, heads, 9, 8}, dtype), draw({2, 2, 9, 8}, dtype, 2), draw({2, 2, 9, 8}, dtype, 3)},
      tolerance);
}

}  // namespace

TEST_CASE("attention_product is softmax attention, causal and not, with grouped heads") {
  for (const bool causal : {false, true}) {
    for (const int64_t heads : {2, 6}) {
      check(at::kFloat, heads, causal, 1e-5);
      check(at::kBFloat16, heads, causal, 2e-2);
    }
  }
}

TEST_CASE("attention_product with a mask leaves hidden keys out, in 16 bits as in 32") {
  const at::Tensor q = draw({2, 2, 3, 8}, at::kFloat), k = draw({2, 2, 5, 8}, at::kFloat, 2),
                   v = draw({2, 2, 5, 8}, at::kFloat, 3);
  at::Tensor mask = at::ones({2, 1, 1, 5}, at::kBool);
  mask.narrow(3, 3, 2).fill_(false);
  const at::Tensor seen =
      attention_product(q, k.narrow(2, 0, 3).contiguous(), v.narrow(2, 0, 3).contiguous());
  CHECK(relative(attention_product(q, k, v, {.mask = mask}), seen) < 1e-6);
  const auto narrow = [](const at::Tensor& x) { return x.to(at::kBFloat16); };
  const at::Tensor short_one = attention_product(narrow(q), narrow(k), narrow(v), {.mask = mask});
  CHECK((short_one.scalar_type() == at::kBFloat16));
  CHECK(relative(short_one.to(at::kFloat), seen) < 2e-2);
}
