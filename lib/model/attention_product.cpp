#include "lib/model/attention_product.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "lib/model/products.h"

namespace mm::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

at::Tensor plain_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const AttentionRule& rule) {
  std::optional<at::Tensor> mask;
  if (rule.mask.defined()) mask = rule.mask;
  return at::scaled_dot_product_attention(q, k, v, mask, /*dropout_p=*/0.0, rule.causal,
                                          /*scale=*/std::nullopt,
                                          /*enable_gqa=*/q.size(1) != k.size(1));
}

/// q, k, v in fp32, each key head once for every query head on it.
struct Wide {
  at::Tensor q, k, v;
};
Wide widen(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const int64_t group = q.size(1) / k.size(1);
  const auto each = [&](const at::Tensor& x) {
    const at::Tensor wide = x.to(at::kFloat);
    return group == 1 ? wide : wide.repeat_interleave(group, 1);
  };
  return {q.to(at::kFloat), each(k), each(v)};
}

struct WidenedAttention : torch::autograd::Function<WidenedAttention> {
  static Variable forward(AutogradContext* context, const Variable& q, const Variable& k,
                          const Variable& v, bool causal) {
    const Wide wide = widen(q, k, v);
    const auto [out, log_sum] =
        at::_scaled_dot_product_flash_attention_for_cpu(wide.q, wide.k, wide.v, 0.0, causal);
    const at::Tensor narrow = out.to(q.scalar_type());
    context->save_for_backward({q, k, v, narrow, log_sum});
    context->saved_data["causal"] = causal;
    return narrow;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &q = saved[0], &k = saved[1];
    const Wide wide = widen(q, k, saved[2]);
    const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        gradients[0].to(at::kFloat), wide.q, wide.k, wide.v, saved[3].to(at::kFloat), saved[4], 0.0,
        context->saved_data["causal"].toBool());
    const int64_t group = q.size(1) / k.size(1);
    const auto narrow = [&](const at::Tensor& x) {
      if (group == 1) return x.to(q.scalar_type());
      return x.reshape({x.size(0), k.size(1), group, x.size(2), x.size(3)})
          .sum(2)
          .to(q.scalar_type());
    };
    return {dq.to(q.scalar_type()), narrow(dk), narrow(dv), Variable()};
  }
};

}  // namespace

at::Tensor attention_product(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                             const AttentionRule& rule) {
  if (!q.device().is_cpu() || !widens_products(q.scalar_type()))
    return plain_attention(q, k, v, rule);
  if (!rule.mask.defined()) return WidenedAttention::apply(q, k, v, rule.causal);
  return plain_attention(q.to(at::kFloat), k.to(at::kFloat), v.to(at::kFloat), rule)
      .to(q.scalar_type());
}

}  // namespace mm::model
