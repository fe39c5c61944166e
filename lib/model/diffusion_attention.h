#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "lib/model/declare_params.h"

namespace mm::model {

/// Full attention of q [N, P, H, D] over k, v [N, L, H, D], scores scaled by 1 / sqrt(D); `keep`
/// [N, L] bool or undefined: keys that count, at least one a row. Returns [N, P, H * D]. fp16 runs
/// in fp32: scores of diffusion transformers leave fp16's range. Differentiable.
at::Tensor masked_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const at::Tensor& keep = {});

/// Projections of one attention; norms over each head of q and k where their ids are set.
struct AttentionLayer {
  Linear q, k, v, out;
  ParamId norm_q = -1, norm_k = -1;
  int64_t heads = 1;
};

/// diffusers' names: "NAME.to_q", "to_k", "to_v", "to_out.0", with `qk_norm` "norm_q", "norm_k".
struct AttentionShape {
  int64_t hidden = 0, heads = 1;
  bool qk_norm = false;
  LinearInit out = LinearInit::kXavier;
};
AttentionLayer declare_attention(const DeclareParams& declare, const std::string& name,
                                 const AttentionShape& shape);
void append_params(std::vector<ParamId>& list, const AttentionLayer& layer);

/// x [N, P, h] -> heads [N, P, H, D], normed with `norm` unless that is -1 (RMSNorm, 1e-6).
at::Tensor project_heads(const Linear& layer, ParamId norm, const ParamView& params,
                         const at::Tensor& x, int64_t heads);

/// Attention of `x` [N, P, h] over `source` [N, L, h], x itself for self attention, and the output
/// projection.
at::Tensor attend(const AttentionLayer& layer, const ParamView& params, const at::Tensor& x,
                  const at::Tensor& source, const at::Tensor& keep = {});

}  // namespace mm::model
