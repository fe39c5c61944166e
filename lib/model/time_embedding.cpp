#include "lib/model/time_embedding.h"

#include <ATen/ATen.h>

#include <cmath>

namespace mm::model {

at::Tensor sinusoid(const at::Tensor& values, int64_t divisor) {
  const at::TensorOptions wide = values.options().dtype(at::kDouble).requires_grad(false);
  const at::Tensor frequencies =
      at::exp(at::arange(kSinusoidWidth / 2, wide) * (-std::log(10000.0) / divisor));
  const at::Tensor angles = values.to(at::kDouble).unsqueeze(1) * frequencies;
  return at::cat({angles.cos(), angles.sin()}, 1);
}

Embedder declare_embedder(const DeclareParams& declare, const std::string& name, int64_t in,
                          int64_t out) {
  return {declare.linear(name + ".linear_1", out, in, LinearInit::kSmallNormal),
          declare.linear(name + ".linear_2", out, out, LinearInit::kSmallNormal)};
}

void append_params(std::vector<ParamId>& list, const Embedder& embedder) {
  append_params(list, embedder.first);
  append_params(list, embedder.second);
}

at::Tensor apply(const Embedder& embedder, const ParamView& params, const at::Tensor& x) {
  const at::Tensor in = x.to(params.get(embedder.first.weight).scalar_type());
  return apply(embedder.second, params, at::silu(apply(embedder.first, params, in)));
}

}  // namespace mm::model
