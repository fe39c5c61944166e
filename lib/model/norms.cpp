#include "lib/model/norms.h"

namespace mm::model {

at::Tensor rms_norm_reference(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const bool wide = x.scalar_type() == at::kDouble;
  const at::Tensor v = wide ? x : x.to(at::kFloat);
  const at::Tensor scale = at::rsqrt(v.square().mean(-1, /*keepdim=*/true) + eps);
  return (v * scale).to(x.scalar_type()) * weight;
}

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return rms_norm_reference(x, weight, eps);
}

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      double eps) {
  return at::layer_norm(x, {x.size(-1)}, weight, bias, eps);
}

}  // namespace mm::model
