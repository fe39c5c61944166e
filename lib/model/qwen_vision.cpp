#include "lib/model/qwen_vision.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/model/activations.h"
#include "lib/model/linear.h"
#include "lib/model/norms.h"
#include "lib/model/patch_layout.h"
#include "lib/model/rope.h"
#include "lib/model/rows.h"
#include "lib/model/segment_attention.h"

namespace mm::model {
namespace {

constexpr int64_t kFrames = 2;
constexpr double kRopeTheta = 10000;

using Values = std::vector<at::Tensor>;
using Inputs = std::span<const at::Tensor>;

/// Declares parameters of one part under one prefix.
struct Declare {
  Model& model;
  std::string prefix;
  Part part = Part::kVision;

  ParamId tensor(const std::string& name, std::vector<int64_t> shape, Init init) const {
    const bool decay = shape.size() >= 2;
    return model.add_param({.name = prefix + name,
                            .shape = std::move(shape),
                            .part = part,
                            .decay = decay,
                            .init = init});
  }
  Linear linear(const std::string& name, int64_t out, int64_t in) const {
    return {tensor(name + ".weight", {out, in}, Init::kNormal),
            tensor(name + ".bias", {out}, Init::kZeros)};
  }
  ParamId norm(const std::string& name, int64_t width) const {
    return tensor(name + ".weight", {width}, Init::kOnes);
  }
};

struct Layer {
  ParamId norm1 = -1, norm2 = -1;
  Linear qkv, out, gate, up, down;
  int64_t heads = 0;
  double eps = 1e-6;
  bool full = false;  ///< sees the whole picture
};

struct Merger {
  ParamId norm = -1;
  Linear first, second;
  double eps = 1e-6;
  int64_t group = 0;  ///< rows that become one
};

const PatchLayout& layout_of(const SegmentContext& context) {
  MM_CHECK(context.batch.patch_layout != nullptr, "a batch without a layout of its patches");
  return *context.batch.patch_layout;
}

// pixel_values [N, channels * p * p] in picture order -> [N, V] in window order. The picture is
// both frames, so the weights of the frames add up.
at::Tensor embed(const SegmentContext& context, ParamId patch, int64_t group) {
  const at::Tensor& pixels = context.batch.pixel_values;
  const int64_t rows = pixels.size(0), width = pixels.size(1);
  const at::Tensor ordered = pixels.view({rows / group, group * width})
                                 .index_select(0, layout_of(context).order)
                                 .view({rows, width});
  return at::linear(ordered, context.params.get(patch).sum(2).flatten(1));
}

at::Tensor attend(const Layer& layer, const SegmentContext& context, const at::Tensor& x) {
  const PatchLayout& layout = layout_of(context);
  const int64_t rows = x.size(0), head = x.size(1) / layer.heads;
  const at::Tensor qkv = apply(layer.qkv, context.params, x).view({rows, 3, layer.heads, head});
  const bool wide = x.scalar_type() == at::kDouble;
  const RopeAngles angles = grid_rope_angles({layout.row, layout.column}, head, kRopeTheta, wide);
  const at::Tensor q = rope(qkv.select(1, 0), angles), k = rope(qkv.select(1, 1), angles);
  return apply(layer.out, context.params,
               segment_attention(q, k, qkv.select(1, 2),
                                 layer.full ? layout.picture_borders : layout.window_borders));
}

at::Tensor run_attention(const Layer& layer, const SegmentContext& context, const at::Tensor& x) {
  return x + attend(layer, context, rms_norm(x, context.params.get(layer.norm1), layer.eps));
}

at::Tensor run_mlp(const Layer& layer, const SegmentContext& context, const at::Tensor& h) {
  const ParamView& params = context.params;
  const at::Tensor n = rms_norm(h, params.get(layer.norm2), layer.eps);
  const at::Tensor inner = swiglu(apply(layer.gate, params, n), apply(layer.up, params, n));
  return h + apply(layer.down, params, inner);
}

at::Tensor merge(const Merger& merger, const SegmentContext& context, const at::Tensor& x) {
  const ParamView& params = context.params;
  const PatchLayout& layout = layout_of(context);
  const at::Tensor joined = rms_norm(x, params.get(merger.norm), merger.eps)
                                .reshape({x.size(0) / merger.group, merger.group * x.size(1)});
  const at::Tensor inner = at::gelu(apply(merger.first, params, joined));
  return permute_rows(apply(merger.second, params, inner), layout.inverse, layout.order);
}

SegmentCost attention_cost(const VisionConfig& c, bool full, const Sizes& sizes) {
  const auto rows = static_cast<double>(sizes.patch_rows);
  const auto h = static_cast<double>(c.hidden);
  SegmentCost cost;
  cost.attention_flops = 4 * (full ? sizes.picture_pairs : sizes.window_pairs) * h;
  cost.forward_flops = rows * 2 * 4 * h * h + cost.attention_flops;
  cost.saved_bytes = rows * (12 * h + 4 * static_cast<double>(c.heads));
  return cost;
}

SegmentCost mlp_cost(const VisionConfig& c, const Sizes& sizes) {
  const auto rows = static_cast<double>(sizes.patch_rows);
  const auto h = static_cast<double>(c.hidden), f = static_cast<double>(c.intermediate);
  return {.forward_flops = rows * 2 * 3 * h * f, .saved_bytes = rows * (4 * h + 6 * f)};
}

SegmentCost merger_cost(const VisionConfig& c, const Sizes& sizes) {
  const auto rows = static_cast<double>(sizes.patch_rows) / static_cast<double>(c.merge * c.merge);
  const auto wide = static_cast<double>(c.hidden * c.merge * c.merge);
  const auto out = static_cast<double>(c.output);
  return {.forward_flops = 2 * rows * (wide * wide + wide * out),
          .saved_bytes = rows * 2 * (3 * wide + out)};
}

Segment embedding_segment(const VisionConfig& c, ParamId patch, Slot out) {
  Segment segment{.name = "vision.embeddings", .out = {out}, .params = {patch}};
  segment.forward = [patch, group = c.merge * c.merge](const SegmentContext& context, Inputs) {
    return Values{embed(context, patch, group)};
  };
  segment.cost = [c](const Sizes& sizes) {
    const auto rows = static_cast<double>(sizes.patch_rows);
    const auto inputs = static_cast<double>(c.channels * c.patch_size * c.patch_size);
    return SegmentCost{.forward_flops = 2 * rows * inputs * static_cast<double>(c.hidden),
                       .saved_bytes = 2 * rows * inputs};
  };
  return segment;
}

Layer declare_layer(const Declare& declare, const VisionConfig& c, int64_t number) {
  const std::string at = "blocks." + std::to_string(number) + ".";
  Layer layer{.heads = c.heads, .eps = c.norm_eps};
  layer.full = std::ranges::find(c.full_layers, number) != c.full_layers.end();
  layer.norm1 = declare.norm(at + "norm1", c.hidden);
  layer.norm2 = declare.norm(at + "norm2", c.hidden);
  layer.qkv = declare.linear(at + "attn.qkv", 3 * c.hidden, c.hidden);
  layer.out = declare.linear(at + "attn.proj", c.hidden, c.hidden);
  layer.gate = declare.linear(at + "mlp.gate_proj", c.intermediate, c.hidden);
  layer.up = declare.linear(at + "mlp.up_proj", c.intermediate, c.hidden);
  layer.down = declare.linear(at + "mlp.down_proj", c.hidden, c.intermediate);
  return layer;
}

/// "NAME.attention" and "NAME.mlp", each with its norm and its sum; `between` lies between them.
std::vector<Step> layer_segments(const Layer& layer, const VisionConfig& c, const std::string& name,
                                 Slot in, Slot between, Slot out) {
  Segment attention{.name = name + ".attention", .in = {in}, .out = {between}};
  attention.params = {layer.norm1};
  for (const Linear* linear : {&layer.qkv, &layer.out}) append_params(attention.params, *linear);
  attention.forward = [layer](const SegmentContext& context, Inputs x) {
    return Values{run_attention(layer, context, x[0])};
  };
  attention.cost = [c, full = layer.full](const Sizes& sizes) {
    return attention_cost(c, full, sizes);
  };
  Segment mlp{.name = name + ".mlp", .in = {between}, .out = {out}, .params = {layer.norm2}};
  for (const Linear* linear : {&layer.gate, &layer.up, &layer.down})
    append_params(mlp.params, *linear);
  mlp.forward = [layer](const SegmentContext& context, Inputs x) {
    return Values{run_mlp(layer, context, x[0])};
  };
  mlp.cost = [c](const Sizes& sizes) { return mlp_cost(c, sizes); };
  return {std::move(attention), std::move(mlp)};
}

Segment merger_segment(const Declare& declare, const VisionConfig& c, Slot in, Slot out) {
  const int64_t group = c.merge * c.merge, wide = c.hidden * group;
  Merger merger{.eps = c.norm_eps, .group = group};
  merger.norm = declare.norm("merger.ln_q", c.hidden);
  merger.first = declare.linear("merger.mlp.0", wide, wide);
  merger.second = declare.linear("merger.mlp.2", c.output, wide);
  Segment segment{.name = "projector", .in = {in}, .out = {out}, .params = {merger.norm}};
  append_params(segment.params, merger.first);
  append_params(segment.params, merger.second);
  segment.forward = [merger](const SegmentContext& context, Inputs x) {
    return Values{merge(merger, context, x[0])};
  };
  segment.cost = [c](const Sizes& sizes) { return merger_cost(c, sizes); };
  return segment;
}

}  // namespace

Slot add_qwen_vision(Model& model, const VisionConfig& config, const std::string& prefix) {
  const Declare declare{model, prefix};
  const ParamId patch = declare.tensor(
      "patch_embed.proj.weight",
      {config.hidden, config.channels, kFrames, config.patch_size, config.patch_size},
      Init::kNormal);
  Slot x = model.add_slot("vision.0");
  model.blocks.push_back(
      {"vision.embeddings", Part::kVision, {embedding_segment(config, patch, x)}});
  for (int64_t i = 0; i < config.layers; ++i) {
    const std::string name = "vision.layers." + std::to_string(i);
    const Layer layer = declare_layer(declare, config, i);
    const Slot between = model.add_slot("vision.attended." + std::to_string(i)),
               out = model.add_slot("vision." + std::to_string(i + 1));
    model.blocks.push_back(
        {name, Part::kVision, layer_segments(layer, config, name, x, between, out)});
    x = out;
  }
  const Slot out = model.add_slot("features");
  const Declare projector{model, prefix, Part::kProjector};
  model.blocks.push_back(
      {"projector", Part::kProjector, {merger_segment(projector, config, x, out)}});
  return out;
}

}  // namespace mm::model
