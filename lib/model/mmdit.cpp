#include "lib/model/mmdit.h"

#include <ATen/ATen.h>

#include "lib/model/caption_input.h"
#include "lib/model/diffusion_cost.h"
#include "lib/model/diffusion_head.h"
#include "lib/model/mmdit_layer.h"
#include "lib/model/time_embedding.h"

namespace mm::model {
namespace {

Segment embedding_segment(Model& model, const DiffusionBuild& build) {
  const DiffusionConfig& c = build.config;
  const PatchEmbedding patches = declare_patch_embedding(model, c);
  const DeclareParams declare(model, Part::kTransformer, "time_text_embed.");
  const Embedder time = declare_embedder(declare, "timestep_embedder", kSinusoidWidth, c.hidden());
  const Embedder pooled = declare_embedder(declare, "text_embedder", c.pooled_width, c.hidden());
  Segment segment{.name = "embeddings", .params = params_of(patches)};
  append_params(segment.params, time);
  append_params(segment.params, pooled);
  if (build.clean >= 0) segment.in = {build.clean};
  segment.out = {model.add_slot("tokens.0"), model.add_slot("conditioning")};
  segment.forward = [=](const SegmentContext& context, std::span<const at::Tensor> in) {
    const DiffusionInput input = build.input(context.batch);
    at::Tensor of_caption = input.pooled;
    if (input.caption_dropped.defined())
      of_caption = of_caption.masked_fill(input.caption_dropped.to(at::kBool).unsqueeze(1), 0);
    return std::vector<at::Tensor>{
        apply(patches, build.config, context.params, build.noisy_pictures(context.batch, in)),
        apply(time, context.params, sinusoid(input.times, build.config.time_divisor)) +
            apply(pooled, context.params, of_caption)};
  };
  segment.cost = [c](const Sizes& sizes) { return embedding_cost(c, sizes); };
  return segment;
}

CaptionProjection declare_captions(Model& model, const DiffusionConfig& c) {
  const DeclareParams declare(model, Part::kTransformer, "");
  const Linear linear = declare.linear("context_embedder", c.hidden(), c.caption_width);
  CaptionProjection projection;
  append_params(projection.params, linear);
  projection.project = [=](const ParamView& params, const at::Tensor& captions) {
    return apply(linear, params, captions.to(params.get(linear.weight).scalar_type()));
  };
  return projection;
}

FinalLayer declare_final(Model& model, const DiffusionConfig& c) {
  const DeclareParams declare(model, Part::kTransformer, "");
  const Linear modulation =
      declare.linear("norm_out.linear", 2 * c.hidden(), c.hidden(), LinearInit::kZero);
  FinalLayer layer;
  append_params(layer.modulation_params, modulation);
  layer.linear = declare.linear("proj_out", c.patch * c.patch * c.out_channels(), c.hidden(),
                                LinearInit::kZero);
  layer.shift_and_scale = [=](const SegmentContext& context, const at::Tensor& conditioning) {
    const auto m = modulation_parts(apply(modulation, context.params, at::silu(conditioning)), 2);
    return std::pair{m[1], m[0]};
  };
  return layer;
}

}  // namespace

void add_mmdit(Model& model, const DiffusionBuild& build) {
  const DiffusionConfig& c = build.config;
  Segment embedding = embedding_segment(model, build);
  Slot x = embedding.out[0];
  const Slot conditioning = embedding.out[1];
  model.blocks.push_back({"embeddings", Part::kTransformer, {std::move(embedding)}});
  Slot text = add_captions(model, build, declare_captions(model, c));
  for (int64_t i = 0; i < c.layers; ++i) {
    const bool last = i + 1 == c.layers;
    Segment segment = mmdit_layer_segment(model, build, i);
    segment.in = {x, text, conditioning};
    x = model.add_slot("tokens." + std::to_string(i + 1));
    segment.out = {x};
    if (!last) {
      text = model.add_slot("text." + std::to_string(i + 1));
      segment.out.push_back(text);
    }
    model.blocks.push_back({segment.name, Part::kTransformer, {segment}});
  }
  add_diffusion_head(model, build, declare_final(model, c), x, conditioning);
}

}  // namespace mm::model
