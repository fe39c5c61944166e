#include "lib/model/diffusion_attention.h"

#include <doctest/doctest.h>

#include <cmath>

#include "lib/model/norms.h"
#include "tests/model/operation_check.h"

using namespace mm::model;
using namespace mm::model::test;

namespace {

at::Tensor by_formula(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                      const at::Tensor& keep) {
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(3)));
  at::Tensor scores = at::matmul(q.transpose(1, 2), k.transpose(1, 2).transpose(2, 3)) * scale;
  if (keep.defined())
    scores = scores.masked_fill(keep.logical_not().view({keep.size(0), 1, 1, keep.size(1)}), -1e30);
  return at::matmul(scores.softmax(-1), v.transpose(1, 2)).transpose(1, 2).flatten(2);
}

}  // namespace

TEST_CASE("attention with and without kept keys equals the formula, gradients too") {
  const at::Tensor keep = at::tensor({1, 1, 0, 0, 1, 1, 1, 0}, at::kInt).view({2, 4}).to(at::kBool);
  for (const at::Tensor& mask : {at::Tensor(), keep}) {
    check_same([&](const auto& in) { return masked_attention(in[0], in[1], in[2], mask); },
               [&](const auto& in) { return by_formula(in[0], in[1], in[2], mask); },
               {draw({2, 3, 2, 6}), draw({2, 4, 2, 6}, at::kDouble, 2),
                draw({2, 4, 2, 6}, at::kDouble, 3)},
               1e-10);
  }
  CHECK(masked_attention(at::empty({0, 3, 2, 6}), at::empty({0, 4, 2, 6}), at::empty({0, 4, 2, 6}))
            .sizes() == at::IntArrayRef({0, 3, 12}));
}

TEST_CASE("fp16 attention runs in fp32: scores beyond fp16's range do no harm") {
  const at::Tensor q = draw({1, 4, 1, 8}, at::kHalf) * 200,
                   k = draw({1, 4, 1, 8}, at::kHalf, 2) * 200, v = draw({1, 4, 1, 8}, at::kHalf, 3);
  const at::Tensor got = masked_attention(q, k, v);
  CHECK((got.scalar_type() == at::kHalf));
  CHECK(at::isfinite(got).all().item<bool>());
  CHECK(at::allclose(got.to(at::kDouble),
                     by_formula(q.to(at::kDouble), k.to(at::kDouble), v.to(at::kDouble), {}), 1e-2,
                     1e-2));
}

TEST_CASE("an attention layer's names, norms and products") {
  Model model;
  const DeclareParams declare(model, Part::kTransformer, "x.");
  const AttentionLayer layer = declare_attention(
      declare, "attn", {.hidden = 8, .heads = 2, .qk_norm = true, .out = LinearInit::kZero});
  CHECK(find_param(model, "x.attn.to_out.0.weight") == layer.out.weight);
  CHECK((model.params[layer.out.weight].init == Init::kZeros));
  CHECK(model.params[layer.norm_q].shape == std::vector<int64_t>{4});
  std::vector<ParamId> ids;
  append_params(ids, layer);
  CHECK(ids.size() == model.params.size());
  const SimpleParams params = lively_params(model, 1);
  const at::Tensor x = draw({2, 3, 8});
  const auto heads = [&](const Linear& linear, ParamId norm) {
    const at::Tensor y =
        at::linear(x, params.get(linear.weight), params.get(linear.bias)).view({2, 3, 2, 4});
    return norm < 0 ? y : rms_norm_reference(y, params.get(norm), 1e-6);
  };
  const at::Tensor mixed = by_formula(heads(layer.q, layer.norm_q), heads(layer.k, layer.norm_k),
                                      heads(layer.v, -1), {});
  CHECK(at::allclose(attend(layer, params, x, x),
                     at::linear(mixed, params.get(layer.out.weight), params.get(layer.out.bias))));
}
