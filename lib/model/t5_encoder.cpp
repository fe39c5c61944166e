#include "lib/model/t5_encoder.h"

#include <ATen/ATen.h>

#include <cmath>

#include "lib/base/error.h"
#include "lib/model/activations.h"
#include "lib/model/masked_attention.h"
#include "lib/model/norms.h"
#include "lib/model/products.h"
#include "lib/model/text_layers.h"

namespace mm::model {
namespace {

struct T5Config {
  int64_t vocab = 32128, hidden = 512, head_size = 64, inner = 2048, layers = 6, heads = 8;
  int64_t buckets = 32, max_distance = 128;
  double eps = 1e-6;
};

struct Layer {
  ParamId norm1 = -1, norm2 = -1, table = -1;
  Linear q, k, v, o, wi_0, wi_1, wo;
  T5Config config;
};

T5Config read(const Section& s) {
  T5Config c;
  s.require("feed_forward_proj", "relu", "gated-gelu");
  c.vocab = s.integer("vocab_size", c.vocab);
  c.hidden = s.integer("d_model", c.hidden);
  c.head_size = s.integer("d_kv", c.head_size);
  c.inner = s.integer("d_ff", c.inner);
  c.layers = s.layers("num_layers", c.layers);
  c.heads = s.integer("num_heads", c.heads);
  c.buckets = s.integer("relative_attention_num_buckets", c.buckets, 4);
  c.max_distance = s.integer("relative_attention_max_distance", c.max_distance);
  c.eps = s.positive("layer_norm_epsilon", c.eps);
  if (c.buckets % 4 != 0 || c.max_distance <= c.buckets / 4)
    throw DataError("{}: {} position buckets up to distance {} do not fit together", s.where,
                    c.buckets, c.max_distance);
  return c;
}

// fp16 sums along the layers pass 65,504 in published weights.
at::Tensor stream(const at::Tensor& x) {
  return x.scalar_type() == at::kHalf ? x.to(at::kFloat) : x;
}

/// RMSNorm of the stream, in the dtype of the weights.
at::Tensor normed(const ParamView& params, ParamId id, double eps, const at::Tensor& x) {
  const at::Tensor weight = params.get(id);
  if (x.scalar_type() == weight.scalar_type()) return rms_norm(x, weight, eps);
  return rms_norm(x, weight.to(x.scalar_type()), eps).to(weight.scalar_type());
}

at::Tensor position_bias(const Layer& l, const ParamView& params, int64_t length) {
  const at::Tensor at = at::arange(length, at::kLong);
  const at::Tensor buckets = t5_position_buckets(at.unsqueeze(0) - at.unsqueeze(1),
                                                 l.config.buckets, l.config.max_distance);
  const at::Tensor table = params.get(l.table);
  return at::embedding(table, buckets.to(table.device())).permute({2, 0, 1}).unsqueeze(0);
}

at::Tensor attend(const Layer& l, const ParamView& params, const PaddedText& text,
                  const at::Tensor& x) {
  const auto split = [&](const Linear& projection) {
    return split_heads(apply(projection, params, x), l.config.heads);
  };
  const at::Tensor mixed = padded_attention(
      split(l.q), split(l.k), split(l.v),
      {.mask = text.mask, .bias = position_bias(l, params, x.size(1)), .scale = 1.0});
  return apply(l.o, params, mixed);
}

at::Tensor feed_forward(const Layer& l, const ParamView& params, const at::Tensor& x) {
  const at::Tensor gate = gelu_tanh(stream(apply(l.wi_0, params, x)));
  const at::Tensor inner = gate * stream(apply(l.wi_1, params, x));
  if (inner.scalar_type() == x.scalar_type()) return apply(l.wo, params, inner);
  return linear_product(inner, params.get(l.wo.weight).to(inner.scalar_type()), {});
}

at::Tensor run(const Layer& l, const ParamView& params, const PaddedText& text,
               const at::Tensor& x) {
  const double eps = l.config.eps;
  const at::Tensor h = x + attend(l, params, text, normed(params, l.norm1, eps, x));
  return h + feed_forward(l, params, normed(params, l.norm2, eps, h));
}

Linear matrix(const DeclareParams& declare, const std::string& name, int64_t out, int64_t in) {
  return {.weight = declare.tensor(name + ".weight", {out, in}, Init::kNormal)};
}

/// `table` -1: this is block 0, which has it.
TextStage layer_stage(const DeclareParams& parent, const T5Config& c, int64_t number,
                      ParamId& table) {
  const DeclareParams block = parent.below("block." + std::to_string(number) + ".layer.");
  const DeclareParams attention = block.below("0.SelfAttention."),
                      dense = block.below("1.DenseReluDense.");
  const int64_t width = c.heads * c.head_size;
  Layer l{.config = c};
  l.q = matrix(attention, "q", width, c.hidden);
  l.k = matrix(attention, "k", width, c.hidden);
  l.v = matrix(attention, "v", width, c.hidden);
  l.o = matrix(attention, "o", c.hidden, width);
  if (table < 0)
    table = attention.tensor("relative_attention_bias.weight", {c.buckets, c.heads}, Init::kNormal);
  l.table = table;
  l.norm1 = block.tensor("0.layer_norm.weight", {c.hidden}, Init::kOnes);
  l.wi_0 = matrix(dense, "wi_0", c.inner, c.hidden);
  l.wi_1 = matrix(dense, "wi_1", c.inner, c.hidden);
  l.wo = matrix(dense, "wo", c.hidden, c.inner);
  l.norm2 = block.tensor("1.layer_norm.weight", {c.hidden}, Init::kOnes);
  TextStage stage = text_layer_stage(number, c.hidden, c.inner);
  stage.weights = static_cast<double>(4 * c.hidden * width) +
                  3 * static_cast<double>(c.hidden) * static_cast<double>(c.inner);
  stage.width = static_cast<double>(width);
  stage.params = {l.norm1, l.norm2, l.table};
  for (const Linear* linear : {&l.q, &l.k, &l.v, &l.o, &l.wi_0, &l.wi_1, &l.wo})
    append_params(stage.params, *linear);
  stage.forward = [l](const ParamView& params, const PaddedText& text, const at::Tensor& x) {
    return run(l, params, text, x);
  };
  return stage;
}

TextStage embedding_stage(ParamId table) {
  TextStage stage{.name = "text.embeddings", .params = {table}};
  stage.forward = [table](const ParamView& params, const PaddedText& text, const at::Tensor&) {
    return stream(at::embedding(params.get(table), text.ids));
  };
  return stage;
}

TextStage final_stage(ParamId weight, double eps) {
  TextStage stage{.name = "text.norm", .params = {weight}};
  stage.forward = [weight, eps](const ParamView& params, const PaddedText&, const at::Tensor& x) {
    return rms_norm(x, params.get(weight).to(x.scalar_type()), eps);
  };
  return stage;
}

}  // namespace

at::Tensor t5_position_buckets(const at::Tensor& relative, int64_t buckets, int64_t max_distance) {
  const int64_t half = buckets / 2, exact = half / 2;
  const at::Tensor behind = relative.gt(0).to(at::kLong) * half;
  const at::Tensor distance = relative.abs();
  // fp32 as in the reference: a boundary falls where its rounding puts it.
  const at::Tensor grown =
      (distance.to(at::kFloat) / static_cast<double>(exact)).log() /
      std::log(static_cast<double>(max_distance) / static_cast<double>(exact)) *
      static_cast<double>(half - exact);
  const at::Tensor far = (grown.to(at::kLong) + exact).clamp_max(half - 1);
  return behind + at::where(distance.lt(exact), distance, far);
}

TextEncoder declare_t5_encoder(Model& model, const Section& config, const std::string& prefix) {
  const T5Config c = read(config);
  const DeclareParams root(model, Part::kTextEncoder, prefix);
  TextEncoder encoder{.family = TextFamily::kT5,
                      .width = c.hidden,
                      .pooled_width = c.hidden,
                      .vocab = c.vocab,
                      .pad_id = config.integer("pad_token_id", 0, 0)};
  encoder.layers.push_back(
      embedding_stage(root.tensor("shared.weight", {c.vocab, c.hidden}, Init::kNormal)));
  ParamId table = -1;
  for (int64_t i = 0; i < c.layers; ++i)
    encoder.layers.push_back(layer_stage(root.below("encoder."), c, i, table));
  encoder.final_norm =
      final_stage(root.tensor("encoder.final_layer_norm.weight", {c.hidden}, Init::kOnes), c.eps);
  encoder.pool = {.name = "text.pool"};
  encoder.pool.forward = [](const ParamView&, const PaddedText& text, const at::Tensor& hidden) {
    return mean_of_tokens(hidden, text.mask);
  };
  return encoder;
}

}  // namespace mm::model
