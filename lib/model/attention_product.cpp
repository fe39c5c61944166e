#include "lib/model/attention_product.h"

#include <ATen/ATen.h>

#include <optional>

#include "lib/model/products.h"

namespace mm::model {
namespace {

at::Tensor plain_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const AttentionRule& rule) {
  std::optional<at::Tensor> mask;
  if (rule.mask.defined()) mask = rule.mask;
  return at::scaled_dot_product_attention(q, k, v, mask, /*dropout_p=*/0.0, rule.causal,
                                          /*scale=*/std::nullopt,
                                          /*enable_gqa=*/q.size(1) != k.size(1));
}

}  // namespace

at::Tensor attention_product(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                             const AttentionRule& rule) {
  if (!q.device().is_cpu() || !widens_products(q.scalar_type()))
    return plain_attention(q, k, v, rule);
  return plain_attention(q.to(at::kFloat), k.to(at::kFloat), v.to(at::kFloat), rule)
      .to(q.scalar_type());
}

}  // namespace mm::model
