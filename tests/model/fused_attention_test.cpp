#include "lib/model/fused_attention.h"

#include <ATen/Parallel.h>

#include "lib/base/error.h"
#include "tests/model/operation_check.h"

using namespace mm::model;
using namespace mm::model::test;

namespace {

const std::vector<int64_t> kBorders{0, 60, 61, 61, 200};

/// Output and the three gradients.
std::vector<at::Tensor> attend(const std::vector<at::Tensor>& qkv,
                               const std::vector<int64_t>& borders) {
  std::vector<at::Tensor> leaves;
  for (const at::Tensor& x : qkv) leaves.push_back(x.detach().clone().requires_grad_());
  at::Tensor out = fused_attention(leaves[0], leaves[1], leaves[2], borders, {.causal = true});
  auto results = torch::autograd::grad({out}, leaves, {at::cos(out.detach() * 3)});
  results.push_back(out.detach());
  return results;
}

std::vector<at::Tensor> draw_qkv(at::ScalarType dtype) {
  return {draw({200, 4, 24}, dtype), draw({200, 2, 24}, dtype, 2), draw({200, 2, 24}, dtype, 3)};
}

}  // namespace

TEST_CASE("fused_attention: what a sample gets does not depend on its neighbours, to the bit") {
  const std::vector<at::Tensor> qkv = draw_qkv(at::kFloat), packed = attend(qkv, kBorders);
  const int64_t begin = 61, rows = 139;
  std::vector<at::Tensor> alone;
  for (const at::Tensor& x : qkv) alone.push_back(x.narrow(0, begin, rows));
  alone = attend(alone, {0, rows});
  for (size_t i = 0; i < alone.size(); ++i)
    CHECK(at::equal(packed[i].narrow(0, begin, rows), alone[i]));
}

TEST_CASE("fused_attention: one thread and three give equal bits") {
  const std::vector<at::Tensor> qkv = draw_qkv(at::kFloat);
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const auto one = attend(qkv, kBorders);
  at::set_num_threads(3);
  const auto three = attend(qkv, kBorders);
  at::set_num_threads(before);
  for (size_t i = 0; i < one.size(); ++i) CHECK(at::equal(one[i], three[i]));
}

TEST_CASE("fused_attention takes bf16 where LibTorch's products are slow, rounding results once") {
  const at::Tensor q = draw({200, 4, 24}, at::kBFloat16);
  if (!has_fused_attention(q)) return;
  std::vector<at::Tensor> wide;
  const std::vector<at::Tensor> qkv = draw_qkv(at::kBFloat16);
  for (const at::Tensor& x : qkv) wide.push_back(x.to(at::kFloat));
  const at::Tensor out = attend(qkv, kBorders).back();
  CHECK((out.scalar_type() == at::kBFloat16));
  CHECK(at::equal(out, attend(wide, kBorders).back().to(at::kBFloat16)));
}

TEST_CASE("fused_attention takes views that are not contiguous") {
  const at::Tensor qkv = draw({200, 3, 2, 24}, at::kFloat);
  const at::Tensor q = qkv.select(1, 0), k = qkv.select(1, 1), v = qkv.select(1, 2);
  CHECK(at::equal(fused_attention(q, k, v, kBorders),
                  fused_attention(q.contiguous(), k.contiguous(), v.contiguous(), kBorders)));
}

TEST_CASE("fused_attention names what does not fit") {
  const at::Tensor q = draw({8, 2, 4}, at::kFloat);
  CHECK(has_fused_attention(q));
  CHECK_THROWS_WITH_AS(fused_attention(q, q, q.to(at::kDouble), {0, 8}),
                       doctest::Contains("v Double"), mm::InternalError);
  CHECK_THROWS_AS(fused_attention(q, q.narrow(0, 0, 7), q.narrow(0, 0, 7), {0, 8}),
                  mm::InternalError);
  for (const std::vector<int64_t>& borders : {std::vector<int64_t>{}, {0, 7}, {1, 8}, {0, 9, 8}})
    CHECK_THROWS_AS(fused_attention(q, q, q, borders), mm::InternalError);
}
