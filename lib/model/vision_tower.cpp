#include "lib/model/vision_tower.h"

#include <ATen/ATen.h>

#include "lib/base/error.h"
#include "lib/model/activations.h"
#include "lib/model/attention.h"
#include "lib/model/linear.h"
#include "lib/model/norms.h"

namespace mm::model {
namespace {

/// Weight and bias of a LayerNorm.
struct Norm {
  ParamId weight = -1, bias = -1;
  double eps = 1e-5;
};

at::Tensor apply(const Norm& norm, const ParamView& params, const at::Tensor& x) {
  return layer_norm(x, params.get(norm.weight), params.get(norm.bias), norm.eps);
}

/// CLIP has a class token and a norm, SigLIP a bias.
struct Embedding {
  ParamId patch = -1, bias = -1, class_token = -1, positions = -1;
  Norm norm;
  int64_t patch_size = 0, grid = 0;
};

struct Layer {
  Norm norm1, norm2;
  Linear q, k, v, out, fc1, fc2;
  int64_t heads = 0;
  VisionKind kind = VisionKind::kClip;
};

/// Declares parameters under one prefix.
class Declare {
 public:
  Declare(Model& model, std::string prefix) : model_(model), prefix_(std::move(prefix)) {}

  ParamId tensor(const std::string& name, std::vector<int64_t> shape, Init init) {
    const bool decay = shape.size() >= 2;
    return model_.add_param({.name = prefix_ + name,
                             .shape = std::move(shape),
                             .part = Part::kVision,
                             .decay = decay,
                             .init = init});
  }
  Linear linear(const std::string& name, int64_t out, int64_t in) {
    return {tensor(name + ".weight", {out, in}, Init::kNormal),
            tensor(name + ".bias", {out}, Init::kZeros)};
  }
  Norm norm(const std::string& name, int64_t width, double eps) {
    return {tensor(name + ".weight", {width}, Init::kOnes),
            tensor(name + ".bias", {width}, Init::kZeros), eps};
  }

 private:
  Model& model_;
  std::string prefix_;
};

// [I, C, h, w] -> [I, patches, C * p * p] in the element order of the convolution's weight. Pixels
// beyond the last whole patch are dropped, as a strided convolution drops them.
at::Tensor unfold_patches(const at::Tensor& pixels, int64_t patch, int64_t grid) {
  const int64_t images = pixels.size(0), channels = pixels.size(1), side = grid * patch;
  return pixels.narrow(2, 0, side)
      .narrow(3, 0, side)
      .reshape({images, channels, grid, patch, grid, patch})
      .permute({0, 2, 4, 1, 3, 5})
      .reshape({images, grid * grid, channels * patch * patch});
}

at::Tensor embed(const Embedding& e, const SegmentContext& context) {
  const at::Tensor& pixels = context.batch.pixel_values;
  const at::Tensor weight = context.params.get(e.patch).flatten(1);
  const at::Tensor unfolded = unfold_patches(pixels, e.patch_size, e.grid);
  const at::Tensor positions = context.params.get(e.positions);
  if (e.class_token < 0)
    return at::linear(unfolded, weight, context.params.get(e.bias)) + positions;
  const at::Tensor patches = at::linear(unfolded, weight);
  const at::Tensor token = context.params.get(e.class_token);
  const at::Tensor first = token.view({1, 1, -1}).expand({pixels.size(0), 1, token.size(0)});
  const at::Tensor x = at::cat({first, patches}, 1) + positions;
  return apply(e.norm, context.params, x);
}

at::Tensor attend(const Layer& layer, const ParamView& params, const at::Tensor& x) {
  const auto split = [&](const Linear& projection) {
    return apply(projection, params, x)
        .view({x.size(0), x.size(1), layer.heads, x.size(2) / layer.heads});
  };
  return apply(layer.out, params, full_attention(split(layer.q), split(layer.k), split(layer.v)));
}

at::Tensor run_attention(const Layer& layer, const ParamView& params, const at::Tensor& x) {
  return x + attend(layer, params, apply(layer.norm1, params, x));
}

at::Tensor run_mlp(const Layer& layer, const ParamView& params, const at::Tensor& h) {
  const at::Tensor inner = apply(layer.fc1, params, apply(layer.norm2, params, h));
  const at::Tensor hidden = layer.kind == VisionKind::kClip ? quick_gelu(inner) : gelu_tanh(inner);
  return h + apply(layer.fc2, params, hidden);
}

std::vector<ParamId> ids_of(const Norm& norm, std::initializer_list<const Linear*> linears) {
  std::vector<ParamId> ids{norm.weight, norm.bias};
  for (const Linear* linear : linears) append_params(ids, *linear);
  return ids;
}

Segment embedding_segment(const Embedding& e, const VisionConfig& c, Slot out) {
  const double weights = static_cast<double>(c.hidden * c.channels * c.patch_size * c.patch_size);
  Segment segment{.name = "vision.embeddings", .out = {out}};
  for (const ParamId id : {e.patch, e.bias, e.class_token, e.positions, e.norm.weight, e.norm.bias})
    if (id >= 0) segment.params.push_back(id);
  segment.forward = [e](const SegmentContext& context, std::span<const at::Tensor>) {
    return std::vector<at::Tensor>{embed(e, context)};
  };
  segment.cost = [c, weights](const Sizes& sizes) {
    const auto rows = static_cast<double>(sizes.images * c.grid_patches());
    return SegmentCost{.forward_flops = 2 * weights * rows,
                       .saved_bytes = 2.0 * rows * 3 * c.hidden};
  };
  return segment;
}

SegmentCost attention_cost(const VisionConfig& c, const Sizes& sizes) {
  const auto images = static_cast<double>(sizes.images), tokens = static_cast<double>(c.rows());
  const auto h = static_cast<double>(c.hidden);
  SegmentCost cost;
  cost.attention_flops = images * 4 * tokens * tokens * h;
  cost.forward_flops = images * tokens * 2 * 4 * h * h + cost.attention_flops;
  // 2-byte activations, 4 bytes of log-sum-exp a head.
  cost.saved_bytes = images * tokens * (12 * h + 4 * static_cast<double>(c.heads));
  return cost;
}

SegmentCost mlp_cost(const VisionConfig& c, const Sizes& sizes) {
  const auto rows = static_cast<double>(sizes.images * c.rows());
  const auto h = static_cast<double>(c.hidden), f = static_cast<double>(c.intermediate);
  return {.forward_flops = rows * 2 * 2 * h * f, .saved_bytes = rows * (4 * h + 4 * f)};
}

/// "NAME.attention" and "NAME.mlp", each with its norm and its sum: what selective recompute
/// chooses between. `between` lies between them.
std::vector<Step> layer_segments(const Layer& layer, const VisionConfig& c, const std::string& name,
                                 Slot in, Slot between, Slot out) {
  Segment attention{.name = name + ".attention", .in = {in}, .out = {between}};
  attention.params = ids_of(layer.norm1, {&layer.q, &layer.k, &layer.v, &layer.out});
  attention.forward = [layer](const SegmentContext& context, std::span<const at::Tensor> x) {
    return std::vector<at::Tensor>{run_attention(layer, context.params, x[0])};
  };
  attention.cost = [c](const Sizes& sizes) { return attention_cost(c, sizes); };
  Segment mlp{.name = name + ".mlp", .in = {between}, .out = {out}};
  mlp.params = ids_of(layer.norm2, {&layer.fc1, &layer.fc2});
  mlp.forward = [layer](const SegmentContext& context, std::span<const at::Tensor> x) {
    return std::vector<at::Tensor>{run_mlp(layer, context.params, x[0])};
  };
  mlp.cost = [c](const Sizes& sizes) { return mlp_cost(c, sizes); };
  return {std::move(attention), std::move(mlp)};
}

Embedding declare_embedding(Declare& declare, const VisionConfig& c) {
  Embedding e{.patch_size = c.patch_size, .grid = c.image_size / c.patch_size};
  const bool clip = c.kind == VisionKind::kClip;
  if (clip) e.class_token = declare.tensor("embeddings.class_embedding", {c.hidden}, Init::kNormal);
  e.patch = declare.tensor("embeddings.patch_embedding.weight",
                           {c.hidden, c.channels, c.patch_size, c.patch_size}, Init::kNormal);
  if (!clip) e.bias = declare.tensor("embeddings.patch_embedding.bias", {c.hidden}, Init::kZeros);
  e.positions =
      declare.tensor("embeddings.position_embedding.weight", {c.rows(), c.hidden}, Init::kNormal);
  if (clip) e.norm = declare.norm("pre_layrnorm", c.hidden, c.norm_eps);
  return e;
}

Layer declare_layer(Declare& declare, const VisionConfig& c, int64_t number) {
  const std::string at = "encoder.layers." + std::to_string(number) + ".";
  Layer layer{.heads = c.heads, .kind = c.kind};
  layer.norm1 = declare.norm(at + "layer_norm1", c.hidden, c.norm_eps);
  layer.q = declare.linear(at + "self_attn.q_proj", c.hidden, c.hidden);
  layer.k = declare.linear(at + "self_attn.k_proj", c.hidden, c.hidden);
  layer.v = declare.linear(at + "self_attn.v_proj", c.hidden, c.hidden);
  layer.out = declare.linear(at + "self_attn.out_proj", c.hidden, c.hidden);
  layer.norm2 = declare.norm(at + "layer_norm2", c.hidden, c.norm_eps);
  layer.fc1 = declare.linear(at + "mlp.fc1", c.intermediate, c.hidden);
  layer.fc2 = declare.linear(at + "mlp.fc2", c.hidden, c.intermediate);
  return layer;
}

/// SigLIP's pooled output is not what a LLaVA reads; its parameters stay with the model.
void declare_pooling_head(Declare& declare, const VisionConfig& c) {
  declare.tensor("head.probe", {1, 1, c.hidden}, Init::kNormal);
  declare.tensor("head.attention.in_proj_weight", {3 * c.hidden, c.hidden}, Init::kNormal);
  declare.tensor("head.attention.in_proj_bias", {3 * c.hidden}, Init::kZeros);
  declare.linear("head.attention.out_proj", c.hidden, c.hidden);
  declare.norm("head.layernorm", c.hidden, c.norm_eps);
  declare.linear("head.mlp.fc1", c.intermediate, c.hidden);
  declare.linear("head.mlp.fc2", c.hidden, c.intermediate);
}

}  // namespace

Slot add_vision_tower(Model& model, const VisionConfig& config, const std::string& prefix,
                      int64_t layers_run) {
  Declare declare(model, prefix);
  Slot x = model.add_slot("vision.0");
  const Embedding embedding = declare_embedding(declare, config);
  model.blocks.push_back(
      {"vision.embeddings", Part::kVision, {embedding_segment(embedding, config, x)}});
  for (int64_t i = 0; i < config.layers; ++i) {
    const Layer layer = declare_layer(declare, config, i);
    if (i >= layers_run) continue;
    const std::string name = "vision.layers." + std::to_string(i);
    const Slot between = model.add_slot("vision.attended." + std::to_string(i)),
               out = model.add_slot("vision." + std::to_string(i + 1));
    model.blocks.push_back(
        {name, Part::kVision, layer_segments(layer, config, name, x, between, out)});
    x = out;
  }
  declare.norm("post_layernorm", config.hidden, config.norm_eps);
  if (config.pooling_head) declare_pooling_head(declare, config);
  return x;
}

}  // namespace mm::model
