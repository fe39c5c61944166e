#include "lib/model/dit.h"

#include <ATen/ATen.h>

#include "lib/base/error.h"
#include "lib/model/ada_norm.h"
#include "lib/model/diffusion_attention.h"
#include "lib/model/diffusion_cost.h"
#include "lib/model/diffusion_head.h"
#include "lib/model/time_embedding.h"

namespace mm::model {
namespace {

/// Time and label to the conditioning.
struct Conditioner {
  Embedder time;
  ParamId labels = -1;
};

struct Layer {
  Linear modulation;
  AttentionLayer attention;
  FeedForward mlp;
  Conditioner own;  ///< with own_embedders
};

Conditioner declare_conditioner(const DeclareParams& declare, const DiffusionConfig& c) {
  const DeclareParams emb = declare.below("norm1.emb.");
  return {declare_embedder(emb, "timestep_embedder", kSinusoidWidth, c.hidden()),
          emb.tensor("class_embedder.embedding_table.weight", {c.classes + 1, c.hidden()},
                     Init::kNormal)};
}

void append_params(std::vector<ParamId>& list, const Conditioner& conditioner) {
  append_params(list, conditioner.time);
  list.push_back(conditioner.labels);
}

at::Tensor condition(const Conditioner& c, const DiffusionBuild& build,
                     const SegmentContext& context) {
  const DiffusionInput in = build.input(context.batch);
  const at::Tensor time =
      apply(c.time, context.params, sinusoid(in.times, build.config.time_divisor));
  return time + at::embedding(context.params.get(c.labels), in.labels);
}

at::Tensor run_layer(const Layer& layer, const DiffusionConfig& c, const ParamView& params,
                     const at::Tensor& x, const at::Tensor& conditioning) {
  const auto m = modulation_parts(apply(layer.modulation, params, at::silu(conditioning)), 6);
  const at::Tensor normed = modulated_norm(x, m[0], m[1], c.attention_norm_eps);
  const at::Tensor h = gated_add(x, m[2], attend(layer.attention, params, normed, normed));
  const at::Tensor inner = modulated_norm(h, m[3], m[4], c.mlp_norm_eps);
  return gated_add(h, m[5], apply(layer.mlp, params, inner));
}

Segment embedding_segment(Model& model, const DiffusionBuild& build,
                          const Conditioner& conditioner) {
  const PatchEmbedding patches = declare_patch_embedding(model, build.config);
  Segment segment{.name = "embeddings", .params = params_of(patches)};
  append_params(segment.params, conditioner);
  if (build.clean >= 0) segment.in = {build.clean};
  segment.out = {model.add_slot("tokens.0"), model.add_slot("conditioning")};
  segment.forward = [=](const SegmentContext& context, std::span<const at::Tensor> in) {
    return std::vector<at::Tensor>{
        apply(patches, build.config, context.params, build.noisy_pictures(context.batch, in)),
        condition(conditioner, build, context)};
  };
  segment.cost = [c = build.config](const Sizes& sizes) { return embedding_cost(c, sizes); };
  return segment;
}

Segment layer_segment(const Layer& layer, const DiffusionBuild& build) {
  Segment segment;
  append_params(segment.params, layer.modulation);
  append_params(segment.params, layer.attention);
  append_params(segment.params, layer.mlp);
  if (build.config.own_embedders) append_params(segment.params, layer.own);
  segment.forward = [=](const SegmentContext& context, std::span<const at::Tensor> in) {
    const at::Tensor conditioning =
        build.config.own_embedders ? condition(layer.own, build, context) : in[1];
    return std::vector<at::Tensor>{
        run_layer(layer, build.config, context.params, in[0], conditioning)};
  };
  segment.cost = [c = build.config](const Sizes& sizes) { return dit_layer_cost(c, sizes); };
  return segment;
}

Layer declare_layer(const DeclareParams& declare, const DiffusionConfig& c) {
  Layer layer;
  layer.modulation = declare.linear("norm1.linear", 6 * c.hidden(), c.hidden(), LinearInit::kZero);
  layer.attention = declare_attention(declare, "attn1", {.hidden = c.hidden(), .heads = c.heads});
  layer.mlp = declare_feed_forward(declare, "ff", c.hidden());
  return layer;
}

FinalLayer declare_final(Model& model, const DiffusionConfig& c) {
  const DeclareParams declare(model, Part::kTransformer, "");
  const Linear modulation =
      declare.linear("proj_out_1", 2 * c.hidden(), c.hidden(), LinearInit::kZero);
  FinalLayer layer;
  append_params(layer.modulation_params, modulation);
  layer.linear = declare.linear("proj_out_2", c.patch * c.patch * c.out_channels(), c.hidden(),
                                LinearInit::kZero);
  layer.shift_and_scale = [=](const SegmentContext& context, const at::Tensor& conditioning) {
    const auto m = modulation_parts(apply(modulation, context.params, at::silu(conditioning)), 2);
    return std::pair{m[0], m[1]};
  };
  return layer;
}

}  // namespace

void add_dit(Model& model, const DiffusionBuild& build) {
  const DiffusionConfig& c = build.config;
  const DeclareParams layers(model, Part::kTransformer, "transformer_blocks.");
  const Conditioner shared = declare_conditioner(layers.below("0."), c);
  Segment embedding = embedding_segment(model, build, shared);
  Slot x = embedding.out[0];
  const Slot conditioning = embedding.out[1];
  model.blocks.push_back({"embeddings", Part::kTransformer, {std::move(embedding)}});
  for (int64_t i = 0; i < c.layers; ++i) {
    const DeclareParams declare = layers.below(std::to_string(i) + ".");
    Layer layer = declare_layer(declare, c);
    if (c.own_embedders) layer.own = i == 0 ? shared : declare_conditioner(declare, c);
    Segment segment = layer_segment(layer, build);
    segment.name = "layers." + std::to_string(i);
    segment.in = {x, conditioning};
    if (c.own_embedders) segment.in = {x};
    x = model.add_slot("tokens." + std::to_string(i + 1));
    segment.out = {x};
    model.blocks.push_back({segment.name, Part::kTransformer, {segment}});
  }
  add_diffusion_head(model, build, declare_final(model, c), x, conditioning);
}

}  // namespace mm::model
