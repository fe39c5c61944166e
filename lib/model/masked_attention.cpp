#include "lib/model/masked_attention.h"

#include <ATen/ATen.h>

#include <limits>

namespace mm::model {
namespace {

double lowest(at::ScalarType type) {
  if (type == at::kHalf) return std::numeric_limits<c10::Half>::lowest();
  if (type == at::kBFloat16) return std::numeric_limits<c10::BFloat16>::lowest();
  return std::numeric_limits<float>::lowest();  // far enough down for float64 too
}

at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                  const std::optional<at::Tensor>& bias, std::optional<double> scale) {
  const at::Tensor out = at::scaled_dot_product_attention(
      q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), bias, /*dropout_p=*/0.0,
      /*is_causal=*/!bias.has_value(), scale);
  return out.transpose(1, 2).flatten(2);
}

}  // namespace

at::Tensor padded_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const PaddedAttention& options) {
  const at::ScalarType type = q.scalar_type();
  const at::Tensor hidden =
      at::zeros({q.size(0), 1, 1, q.size(1)}, q.options().requires_grad(false))
          .masked_fill(options.mask.logical_not().view({q.size(0), 1, 1, q.size(1)}), lowest(type));
  // A positive bias added to the lowest number may not overflow to minus infinity in sum.
  const at::Tensor bias = options.bias.defined()
                              ? options.bias.to(type).masked_fill(hidden.ne(0), lowest(type))
                              : hidden.expand({-1, -1, q.size(1), -1});
  return attend(q, k, v, bias, options.scale);
}

at::Tensor causal_rows(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  return attend(q, k, v, std::nullopt, std::nullopt);
}

}  // namespace mm::model
