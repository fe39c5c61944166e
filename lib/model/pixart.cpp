#include "lib/model/pixart.h"

#include <ATen/ATen.h>

#include <cmath>

#include "lib/model/activations.h"
#include "lib/model/ada_norm.h"
#include "lib/model/caption_input.h"
#include "lib/model/diffusion_attention.h"
#include "lib/model/diffusion_cost.h"
#include "lib/model/diffusion_head.h"
#include "lib/model/time_embedding.h"

namespace mm::model {
namespace {

struct Conditioner {
  Embedder time, resolution, aspect_ratio;  ///< the last two with size_embedders
  Linear modulation;
};

struct Layer {
  AttentionLayer self, cross;
  FeedForward mlp;
  ParamId table = -1;  ///< [6, h], added to the shared modulation
};

Conditioner declare_conditioner(Model& model, const DiffusionConfig& c) {
  const DeclareParams declare(model, Part::kTransformer, "adaln_single.");
  Conditioner conditioner;
  conditioner.time = declare_embedder(declare, "emb.timestep_embedder", kSinusoidWidth, c.hidden());
  if (c.size_embedders) {
    const int64_t width = c.hidden() / 3;
    conditioner.resolution =
        declare_embedder(declare, "emb.resolution_embedder", kSinusoidWidth, width);
    conditioner.aspect_ratio =
        declare_embedder(declare, "emb.aspect_ratio_embedder", kSinusoidWidth, width);
  }
  conditioner.modulation =
      declare.linear("linear", 6 * c.hidden(), c.hidden(), LinearInit::kSmallNormal);
  return conditioner;
}

// values [N, k], each through the embedder -> [N, k * width].
at::Tensor embed_sizes(const Embedder& embedder, const DiffusionConfig& c, const ParamView& params,
                       const at::Tensor& values) {
  const at::Tensor each = apply(embedder, params, sinusoid(values.flatten(), c.time_divisor));
  return each.view({values.size(0), values.size(1) * each.size(1)});
}

at::Tensor condition(const Conditioner& conditioner, const DiffusionConfig& c,
                     const ParamView& params, const DiffusionInput& in) {
  const at::Tensor time = apply(conditioner.time, params, sinusoid(in.times, c.time_divisor));
  if (!c.size_embedders) return time;
  return time + at::cat({embed_sizes(conditioner.resolution, c, params, in.resolutions),
                         embed_sizes(conditioner.aspect_ratio, c, params, in.aspect_ratios)},
                        1);
}

Segment embedding_segment(Model& model, const DiffusionBuild& build) {
  const DiffusionConfig& c = build.config;
  const PatchEmbedding patches = declare_patch_embedding(model, c);
  const Conditioner conditioner = declare_conditioner(model, c);
  Segment segment{.name = "embeddings", .params = params_of(patches)};
  append_params(segment.params, conditioner.time);
  if (c.size_embedders) {
    append_params(segment.params, conditioner.resolution);
    append_params(segment.params, conditioner.aspect_ratio);
  }
  append_params(segment.params, conditioner.modulation);
  if (build.clean >= 0) segment.in = {build.clean};
  segment.out = {model.add_slot("tokens.0"), model.add_slot("conditioning"),
                 model.add_slot("modulation")};
  segment.forward = [=](const SegmentContext& context, std::span<const at::Tensor> in) {
    const at::Tensor embedded =
        condition(conditioner, build.config, context.params, build.input(context.batch));
    return std::vector<at::Tensor>{
        apply(patches, build.config, context.params, build.noisy_pictures(context.batch, in)),
        embedded, apply(conditioner.modulation, context.params, at::silu(embedded))};
  };
  segment.cost = [c](const Sizes& sizes) {
    SegmentCost cost = embedding_cost(c, sizes);
    const auto h = static_cast<double>(c.hidden());
    cost.forward_flops += 12 * static_cast<double>(sizes.images) * h * h;
    return cost;
  };
  return segment;
}

Layer declare_layer(const DeclareParams& declare, const DiffusionConfig& c) {
  Layer layer;
  layer.table = declare.tensor("scale_shift_table", {6, c.hidden()}, Init::kNormal,
                               1 / std::sqrt(static_cast<double>(c.hidden())));
  layer.self = declare_attention(declare, "attn1", {.hidden = c.hidden(), .heads = c.heads});
  layer.cross = declare_attention(
      declare, "attn2", {.hidden = c.hidden(), .heads = c.heads, .out = LinearInit::kZero});
  layer.mlp = declare_feed_forward(declare, "ff", c.hidden());
  return layer;
}

struct LayerInputs {
  at::Tensor tokens, modulation, captions, keep;
};

at::Tensor run_layer(const Layer& layer, const DiffusionConfig& c, const ParamView& params,
                     const LayerInputs& in) {
  const at::Tensor shared = in.modulation.view({in.modulation.size(0), 6, c.hidden()});
  const auto m = modulation_parts(shared + params.get(layer.table), 6);
  const at::Tensor normed = modulated_norm(in.tokens, m[0], m[1], c.attention_norm_eps);
  at::Tensor h = gated_add(in.tokens, m[2], attend(layer.self, params, normed, normed));
  h = h + attend(layer.cross, params, h, in.captions, in.keep);
  const at::Tensor inner = modulated_norm(h, m[3], m[4], c.mlp_norm_eps);
  return gated_add(h, m[5], apply(layer.mlp, params, inner));
}

Segment layer_segment(const Layer& layer, const DiffusionBuild& build) {
  Segment segment{.params = {layer.table}};
  append_params(segment.params, layer.self);
  append_params(segment.params, layer.cross);
  append_params(segment.params, layer.mlp);
  segment.forward = [=](const SegmentContext& context, std::span<const at::Tensor> in) {
    const at::Tensor keep = caption_rows(build.config, context.batch).keep;
    const at::Tensor on_device = keep.defined() ? keep.to(in[2].device()) : keep;
    return std::vector<at::Tensor>{
        run_layer(layer, build.config, context.params, {in[0], in[1], in[2], on_device})};
  };
  segment.cost = [c = build.config](const Sizes& sizes) { return pixart_layer_cost(c, sizes); };
  return segment;
}

CaptionProjection declare_captions(Model& model, const DiffusionConfig& c) {
  const DeclareParams declare(model, Part::kTransformer, "caption_projection.");
  const Linear first =
      declare.linear("linear_1", c.hidden(), c.caption_input(), LinearInit::kSmallNormal);
  const Linear second =
      declare.linear("linear_2", c.hidden(), c.hidden(), LinearInit::kSmallNormal);
  CaptionProjection projection;
  append_params(projection.params, first);
  append_params(projection.params, second);
  if (c.null_caption && c.text.vocab == 0) {
    projection.null_caption =
        declare.tensor("y_embedding", {c.caption_tokens, c.caption_width}, Init::kNormal,
                       1 / std::sqrt(static_cast<double>(c.caption_width)));
  }
  projection.project = [=](const ParamView& params, const at::Tensor& captions) {
    const at::Tensor in = captions.to(params.get(first.weight).scalar_type());
    return apply(second, params, gelu_tanh(apply(first, params, in)));
  };
  return projection;
}

FinalLayer declare_final(Model& model, const DiffusionConfig& c) {
  const DeclareParams declare(model, Part::kTransformer, "");
  const ParamId table = declare.tensor("scale_shift_table", {2, c.hidden()}, Init::kNormal,
                                       1 / std::sqrt(static_cast<double>(c.hidden())));
  FinalLayer layer{.modulation_params = {table}};
  layer.linear = declare.linear("proj_out", c.patch * c.patch * c.out_channels(), c.hidden(),
                                LinearInit::kZero);
  layer.shift_and_scale = [=](const SegmentContext& context, const at::Tensor& conditioning) {
    const auto m = modulation_parts(context.params.get(table) + conditioning.unsqueeze(1), 2);
    return std::pair{m[0], m[1]};
  };
  return layer;
}

}  // namespace

void add_pixart(Model& model, const DiffusionBuild& build) {
  const DiffusionConfig& c = build.config;
  Segment embedding = embedding_segment(model, build);
  Slot x = embedding.out[0];
  const Slot conditioning = embedding.out[1], modulation = embedding.out[2];
  model.blocks.push_back({"embeddings", Part::kTransformer, {std::move(embedding)}});
  const Slot captions = add_captions(model, build, declare_captions(model, c));
  const DeclareParams layers(model, Part::kTransformer, "transformer_blocks.");
  for (int64_t i = 0; i < c.layers; ++i) {
    Segment segment = layer_segment(declare_layer(layers.below(std::to_string(i) + "."), c), build);
    segment.name = "layers." + std::to_string(i);
    segment.in = {x, modulation, captions};
    x = model.add_slot("tokens." + std::to_string(i + 1));
    segment.out = {x};
    model.blocks.push_back({segment.name, Part::kTransformer, {segment}});
  }
  add_diffusion_head(model, build, declare_final(model, c), x, conditioning);
}

}  // namespace mm::model
