#include "lib/model/mmdit_layer.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "lib/model/ada_norm.h"
#include "lib/model/caption_input.h"
#include "lib/model/diffusion_attention.h"
#include "lib/model/diffusion_cost.h"

namespace mm::model {
namespace {

constexpr double kNormEps = 1e-6;

/// What one of the two streams has. Text of the last layer has q's parameters, but nothing reads
/// what its queries would find.
struct Stream {
  Linear modulation;
  AttentionLayer attention;
  FeedForward mlp;
};

struct Layer {
  Stream picture, text;
  AttentionLayer second;  ///< over the picture alone, with `dual`
  bool dual = false, last = false;
  int64_t heads = 1;
};

Stream declare_picture(const DeclareParams& d, const DiffusionConfig& c, bool dual) {
  const int64_t h = c.hidden();
  Stream stream;
  stream.modulation = d.linear("norm1.linear", (dual ? 9 : 6) * h, h, LinearInit::kZero);
  stream.attention =
      declare_attention(d, "attn", {.hidden = h, .heads = c.heads, .qk_norm = c.qk_norm});
  stream.mlp = declare_feed_forward(d, "ff", h);
  return stream;
}

Stream declare_text(const DeclareParams& d, const DiffusionConfig& c, bool last) {
  const int64_t h = c.hidden();
  Stream stream{.attention = {.heads = c.heads}};
  stream.modulation = d.linear("norm1_context.linear", (last ? 2 : 6) * h, h, LinearInit::kZero);
  stream.attention.q = d.linear("attn.add_q_proj", h, h);
  stream.attention.k = d.linear("attn.add_k_proj", h, h);
  stream.attention.v = d.linear("attn.add_v_proj", h, h);
  if (c.qk_norm) {
    stream.attention.norm_q = d.tensor("attn.norm_added_q.weight", {c.head_size}, Init::kOnes);
    stream.attention.norm_k = d.tensor("attn.norm_added_k.weight", {c.head_size}, Init::kOnes);
  }
  if (last) return stream;
  stream.attention.out = d.linear("attn.to_add_out", h, h);
  stream.mlp = declare_feed_forward(d, "ff_context", h);
  return stream;
}

Layer declare_layer(const DeclareParams& declare, const DiffusionConfig& c, int64_t number) {
  Layer layer{.heads = c.heads};
  layer.dual = std::ranges::find(c.dual_layers, number) != c.dual_layers.end();
  layer.last = number + 1 == c.layers;
  layer.picture = declare_picture(declare, c, layer.dual);
  layer.text = declare_text(declare, c, layer.last);
  if (layer.dual) {
    layer.second = declare_attention(
        declare, "attn2", {.hidden = c.hidden(), .heads = c.heads, .qk_norm = c.qk_norm});
  }
  return layer;
}

/// q, k, v of one stream, [N, rows, H, D] each.
struct Projected {
  at::Tensor q, k, v;
};

Projected project(const AttentionLayer& layer, const ParamView& params, const at::Tensor& x,
                  bool with_q) {
  Projected p;
  if (with_q) p.q = project_heads(layer.q, layer.norm_q, params, x, layer.heads);
  p.k = project_heads(layer.k, layer.norm_k, params, x, layer.heads);
  p.v = project_heads(layer.v, -1, params, x, layer.heads);
  return p;
}

// Keys of the picture always count; `keep` [N, L] or undefined is of the text.
at::Tensor joint_keep(const at::Tensor& keep, const at::Tensor& tokens) {
  if (!keep.defined()) return {};
  const at::Tensor all = at::ones({keep.size(0), tokens.size(1)}, at::kBool);
  return at::cat({all, keep}, 1).to(tokens.device());
}

std::vector<at::Tensor> run_layer(const Layer& layer, const ParamView& params,
                                  std::span<const at::Tensor> in, const at::Tensor& keep) {
  const at::Tensor &x = in[0], &text = in[1], act = at::silu(in[2]);
  const auto m = modulation_parts(apply(layer.picture.modulation, params, act), layer.dual ? 9 : 6);
  const auto t = modulation_parts(apply(layer.text.modulation, params, act), layer.last ? 2 : 6);
  // The last text norm is a continuous one: scale, then shift.
  const at::Tensor text_normed = layer.last ? modulated_norm(text, t[1], t[0], kNormEps)
                                            : modulated_norm(text, t[0], t[1], kNormEps);
  const Projected a = project(layer.picture.attention, params,
                              modulated_norm(x, m[0], m[1], kNormEps), true),
                  b = project(layer.text.attention, params, text_normed, !layer.last);
  const at::Tensor mixed =
      masked_attention(layer.last ? a.q : at::cat({a.q, b.q}, 1), at::cat({a.k, b.k}, 1),
                       at::cat({a.v, b.v}, 1), joint_keep(keep, x));
  const int64_t patches = x.size(1);
  at::Tensor h =
      gated_add(x, m[2], apply(layer.picture.attention.out, params, mixed.narrow(1, 0, patches)));
  if (layer.dual) {
    const at::Tensor again = modulated_norm(x, m[6], m[7], kNormEps);
    h = gated_add(h, m[8], attend(layer.second, params, again, again));
  }
  h = gated_add(h, m[5], apply(layer.picture.mlp, params, modulated_norm(h, m[3], m[4], kNormEps)));
  if (layer.last) return {h};
  at::Tensor s = gated_add(
      text, t[2], apply(layer.text.attention.out, params, mixed.narrow(1, patches, text.size(1))));
  s = gated_add(s, t[5], apply(layer.text.mlp, params, modulated_norm(s, t[3], t[4], kNormEps)));
  return {h, s};
}

std::vector<ParamId> ids_of(const Layer& layer) {
  std::vector<ParamId> ids;
  append_params(ids, layer.picture.modulation);
  append_params(ids, layer.picture.attention);
  append_params(ids, layer.picture.mlp);
  if (layer.dual) append_params(ids, layer.second);
  append_params(ids, layer.text.modulation);
  append_params(ids, layer.text.attention.k);
  append_params(ids, layer.text.attention.v);
  if (layer.text.attention.norm_k >= 0) ids.push_back(layer.text.attention.norm_k);
  if (layer.last) return ids;
  append_params(ids, layer.text.attention.q);
  if (layer.text.attention.norm_q >= 0) ids.push_back(layer.text.attention.norm_q);
  append_params(ids, layer.text.attention.out);
  append_params(ids, layer.text.mlp);
  return ids;
}

}  // namespace

Segment mmdit_layer_segment(Model& model, const DiffusionBuild& build, int64_t number) {
  const DeclareParams declare(model, Part::kTransformer,
                              "transformer_blocks." + std::to_string(number) + ".");
  const Layer layer = declare_layer(declare, build.config, number);
  Segment segment{.name = "layers." + std::to_string(number), .params = ids_of(layer)};
  segment.forward = [=](const SegmentContext& context, std::span<const at::Tensor> in) {
    const at::Tensor keep = caption_rows(build.config, context.batch).keep;
    return run_layer(layer, context.params, in, keep);
  };
  segment.cost = [c = build.config, dual = layer.dual, last = layer.last](const Sizes& sizes) {
    return mmdit_layer_cost(c, sizes, dual, last);
  };
  return segment;
}

}  // namespace mm::model
