#include "lib/model/diffusion_attention.h"

#include <ATen/ATen.h>

#include "lib/model/attention.h"
#include "lib/model/attention_product.h"
#include "lib/model/norms.h"

namespace mm::model {
namespace {

constexpr double kHeadNormEps = 1e-6;

}  // namespace

at::Tensor masked_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const at::Tensor& keep) {
  const std::vector<int64_t> shape{q.size(0), q.size(1), q.size(2) * q.size(3)};
  if (q.size(0) == 0) return q.reshape(shape);
  if (q.scalar_type() == at::kHalf) {
    return masked_attention(q.to(at::kFloat), k.to(at::kFloat), v.to(at::kFloat), keep)
        .to(at::kHalf);
  }
  if (!keep.defined() && q.sizes() == k.sizes()) return full_attention(q, k, v);
  AttentionRule rule;
  if (keep.defined()) rule.mask = keep.view({keep.size(0), 1, 1, keep.size(1)});
  const at::Tensor out =
      attention_product(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), rule);
  return out.transpose(1, 2).reshape(shape);
}

AttentionLayer declare_attention(const DeclareParams& declare, const std::string& name,
                                 const AttentionShape& shape) {
  const int64_t h = shape.hidden;
  AttentionLayer layer{.heads = shape.heads};
  layer.q = declare.linear(name + ".to_q", h, h);
  layer.k = declare.linear(name + ".to_k", h, h);
  layer.v = declare.linear(name + ".to_v", h, h);
  layer.out = declare.linear(name + ".to_out.0", h, h, shape.out);
  if (shape.qk_norm) {
    layer.norm_q = declare.tensor(name + ".norm_q.weight", {h / shape.heads}, Init::kOnes);
    layer.norm_k = declare.tensor(name + ".norm_k.weight", {h / shape.heads}, Init::kOnes);
  }
  return layer;
}

void append_params(std::vector<ParamId>& list, const AttentionLayer& layer) {
  for (const Linear* linear : {&layer.q, &layer.k, &layer.v, &layer.out})
    append_params(list, *linear);
  for (ParamId id : {layer.norm_q, layer.norm_k})
    if (id >= 0) list.push_back(id);
}

at::Tensor project_heads(const Linear& layer, ParamId norm, const ParamView& params,
                         const at::Tensor& x, int64_t heads) {
  const at::Tensor y = apply(layer, params, x);
  const at::Tensor split = y.view({y.size(0), y.size(1), heads, y.size(2) / heads});
  return norm < 0 ? split : rms_norm(split, params.get(norm), kHeadNormEps);
}

at::Tensor attend(const AttentionLayer& layer, const ParamView& params, const at::Tensor& x,
                  const at::Tensor& source, const at::Tensor& keep) {
  const at::Tensor q = project_heads(layer.q, layer.norm_q, params, x, layer.heads),
                   k = project_heads(layer.k, layer.norm_k, params, source, layer.heads),
                   v = project_heads(layer.v, -1, params, source, layer.heads);
  return apply(layer.out, params, masked_attention(q, k, v, keep));
}

}  // namespace mm::model
