#include "lib/model/caption_encoder.h"

#include <ATen/ATen.h>

#include "lib/model/activations.h"
#include "lib/model/caption_input.h"
#include "lib/model/declare_params.h"
#include "lib/model/norms.h"
#include "lib/model/rows.h"
#include "lib/model/segment_attention.h"

namespace mm::model {
namespace {

constexpr double kNormEps = 1e-5;

struct Norm {
  ParamId weight = -1, bias = -1;
};

struct Layer {
  Norm norm1, norm2;
  Linear q, k, v, out, fc1, fc2;
  int64_t heads = 1;
};

struct Output {
  Norm norm;
  ParamId null_caption = -1;
};

Norm declare_norm(const DeclareParams& declare, const std::string& name, int64_t width) {
  return {declare.tensor(name + ".weight", {width}, Init::kOnes),
          declare.tensor(name + ".bias", {width}, Init::kZeros)};
}

at::Tensor apply(const Norm& norm, const ParamView& params, const at::Tensor& x) {
  return layer_norm(x, params.get(norm.weight), params.get(norm.bias), kNormEps);
}

Layer declare_layer(const DeclareParams& d, const CaptionEncoderConfig& c) {
  Layer layer{.heads = c.heads};
  layer.norm1 = declare_norm(d, "layer_norm1", c.hidden);
  layer.q = d.linear("self_attn.q_proj", c.hidden, c.hidden);
  layer.k = d.linear("self_attn.k_proj", c.hidden, c.hidden);
  layer.v = d.linear("self_attn.v_proj", c.hidden, c.hidden);
  layer.out = d.linear("self_attn.out_proj", c.hidden, c.hidden);
  layer.norm2 = declare_norm(d, "layer_norm2", c.hidden);
  layer.fc1 = d.linear("mlp.fc1", 4 * c.hidden, c.hidden);
  layer.fc2 = d.linear("mlp.fc2", c.hidden, 4 * c.hidden);
  return layer;
}

std::vector<ParamId> ids_of(const Layer& l) {
  std::vector<ParamId> ids{l.norm1.weight, l.norm1.bias, l.norm2.weight, l.norm2.bias};
  for (const Linear* linear : {&l.q, &l.k, &l.v, &l.out, &l.fc1, &l.fc2})
    append_params(ids, *linear);
  return ids;
}

at::Tensor run_layer(const Layer& layer, const ParamView& params, const at::Tensor& x,
                     const std::vector<int64_t>& borders) {
  const at::Tensor normed = apply(layer.norm1, params, x);
  // As all attention of diffusion models, fp16's in fp32: scores may pass fp16's range.
  const at::ScalarType wide = x.scalar_type() == at::kHalf ? at::kFloat : x.scalar_type();
  const auto heads = [&](const Linear& linear) {
    return apply(linear, params, normed)
        .view({x.size(0), layer.heads, x.size(1) / layer.heads})
        .to(wide);
  };
  const at::Tensor mixed =
      segment_attention(heads(layer.q), heads(layer.k), heads(layer.v), borders)
          .to(x.scalar_type());
  const at::Tensor h = x + apply(layer.out, params, mixed);
  const at::Tensor inner = apply(layer.fc1, params, apply(layer.norm2, params, h));
  return h + apply(layer.fc2, params, gelu_tanh(inner));
}

Segment embedding_segment(Model& model, const DiffusionConfig& config, Slot out) {
  const DeclareParams declare(model, Part::kTextEncoder, "text_encoder.");
  const int64_t width = config.text.hidden;
  const ParamId table =
      declare.tensor("embed_tokens.weight", {config.text.vocab, width}, Init::kNormal);
  const ParamId positions =
      declare.tensor("position_embedding.weight", {config.caption_tokens, width}, Init::kNormal);
  Segment segment{.name = "text_encoder.embeddings", .out = {out}, .params = {table, positions}};
  segment.forward = [=](const SegmentContext& context, std::span<const at::Tensor>) {
    const CaptionTokens tokens = caption_tokens(config, context.batch);
    const at::Tensor ids =
        tokens.rows.numel() > 0 ? context.batch.tokens.index_select(0, tokens.rows) : tokens.rows;
    return std::vector<at::Tensor>{at::embedding(context.params.get(table), ids) +
                                   at::embedding(context.params.get(positions), tokens.positions)};
  };
  segment.cost = [width](const Sizes& sizes) {
    return SegmentCost{.saved_bytes = 8.0 * static_cast<double>(sizes.tokens * width)};
  };
  return segment;
}

SegmentCost layer_cost(const CaptionEncoderConfig& c, const Sizes& sizes) {
  const auto tokens = static_cast<double>(sizes.tokens), h = static_cast<double>(c.hidden);
  // Pairs of a caption with itself in both directions.
  const double pairs = 2 * sizes.attention_pairs - tokens;
  SegmentCost cost;
  cost.attention_flops = 4 * std::max(pairs, 0.0) * h;
  cost.forward_flops = tokens * 24 * h * h + cost.attention_flops;
  cost.saved_bytes = 2 * tokens * 18 * h;
  return cost;
}

Segment layer_segment(const Layer& layer, const DiffusionConfig& config, const std::string& name) {
  Segment segment{.name = name, .params = ids_of(layer)};
  segment.forward = [=](const SegmentContext& context, std::span<const at::Tensor> in) {
    const std::vector<int64_t> borders = caption_tokens(config, context.batch).borders;
    return std::vector<at::Tensor>{run_layer(layer, context.params, in[0], borders)};
  };
  segment.cost = [c = config.text](const Sizes& sizes) { return layer_cost(c, sizes); };
  return segment;
}

at::Tensor run_output(const Output& output, const DiffusionConfig& config,
                      const SegmentContext& context, const at::Tensor& x) {
  const CaptionTokens tokens = caption_tokens(config, context.batch);
  const int64_t n = std::ssize(tokens.borders) - 1, width = config.text.hidden;
  const at::Tensor normed = apply(output.norm, context.params, x);
  const at::Tensor null =
      context.params.get(output.null_caption).expand({tokens.null_places.size(0), width});
  const at::Tensor padded = at::zeros({n * tokens.length, width}, normed.options());
  return replace_rows(replace_rows(padded, tokens.places, normed), tokens.null_places, null)
      .view({n, tokens.length, width});
}

}  // namespace

Slot add_caption_encoder(Model& model, const DiffusionConfig& config) {
  Slot x = model.add_slot("text_encoder.0");
  model.blocks.push_back(
      {"text_encoder.embeddings", Part::kTextEncoder, {embedding_segment(model, config, x)}});
  const DeclareParams declare(model, Part::kTextEncoder, "text_encoder.");
  for (int64_t i = 0; i < config.text.layers; ++i) {
    const std::string name = "layers." + std::to_string(i);
    const Layer layer = declare_layer(declare.below(name + "."), config.text);
    Segment segment = layer_segment(layer, config, "text_encoder." + name);
    segment.in = {x};
    x = model.add_slot("text_encoder." + std::to_string(i + 1));
    segment.out = {x};
    model.blocks.push_back({segment.name, Part::kTextEncoder, {segment}});
  }
  const Output output{declare_norm(declare, "final_layer_norm", config.text.hidden),
                      declare.tensor("null_caption", {1, config.text.hidden}, Init::kNormal)};
  const Slot out = model.add_slot("text_encoder.captions");
  Segment segment{.name = "text_encoder.output",
                  .in = {x},
                  .out = {out},
                  .params = {output.norm.weight, output.norm.bias, output.null_caption}};
  segment.forward = [=](const SegmentContext& context, std::span<const at::Tensor> in) {
    return std::vector<at::Tensor>{run_output(output, config, context, in[0])};
  };
  model.blocks.push_back({segment.name, Part::kTextEncoder, {segment}});
  return out;
}

}  // namespace mm::model
