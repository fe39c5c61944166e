#include "lib/model/llama.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/model/activations.h"
#include "lib/model/attention.h"
#include "lib/model/cached_attention.h"
#include "lib/model/language_head.h"
#include "lib/model/linear.h"
#include "lib/model/norms.h"
#include "lib/model/rope.h"
#include "lib/model/steps.h"

namespace mm::model {
namespace {

struct Layer {
  TextConfig config;
  int64_t number = 0;
  ParamId norm1 = -1, norm2 = -1, q_norm = -1, k_norm = -1;
  Linear q, k, v, o, gate, up, down;
};

Linear declare_linear(Model& model, const std::string& name, std::vector<int64_t> shape,
                      int split_dim, bool bias = false) {
  const int64_t out = shape[0];
  Linear linear;
  linear.weight = model.add_param(
      {.name = name + ".weight", .shape = std::move(shape), .decay = true, .split_dim = split_dim});
  if (bias)
    linear.bias = model.add_param(
        {.name = name + ".bias", .shape = {out}, .init = Init::kZeros, .split_dim = 0});
  return linear;
}

ParamId declare_norm(Model& model, const std::string& name, int64_t width) {
  return model.add_param({.name = name + ".weight", .shape = {width}, .init = Init::kOnes});
}

Layer declare_layer(Model& model, const TextConfig& c, const std::string& at, int64_t number) {
  const int64_t q_width = c.heads * c.head_size, kv_width = c.kv_heads * c.head_size;
  Layer layer{.config = c, .number = number};
  layer.norm1 = declare_norm(model, at + "input_layernorm", c.hidden);
  layer.q = declare_linear(model, at + "self_attn.q_proj", {q_width, c.hidden}, 0, c.qkv_bias);
  layer.k = declare_linear(model, at + "self_attn.k_proj", {kv_width, c.hidden}, 0, c.qkv_bias);
  layer.v = declare_linear(model, at + "self_attn.v_proj", {kv_width, c.hidden}, 0, c.qkv_bias);
  if (c.qk_norm) {
    layer.q_norm = declare_norm(model, at + "self_attn.q_norm", c.head_size);
    layer.k_norm = declare_norm(model, at + "self_attn.k_norm", c.head_size);
  }
  layer.o = declare_linear(model, at + "self_attn.o_proj", {c.hidden, q_width}, 1);
  layer.norm2 = declare_norm(model, at + "post_attention_layernorm", c.hidden);
  layer.gate = declare_linear(model, at + "mlp.gate_proj", {c.intermediate, c.hidden}, 0);
  layer.up = declare_linear(model, at + "mlp.up_proj", {c.intermediate, c.hidden}, 0);
  layer.down = declare_linear(model, at + "mlp.down_proj", {c.hidden, c.intermediate}, 1);
  return layer;
}

using Values = std::vector<at::Tensor>;
using Inputs = std::span<const at::Tensor>;

RopeAngles angles_of(const TextConfig& c, const Batch& batch, bool wide) {
  // Without pictures all axes have the same positions.
  if (c.rope_sections.empty() || !batch.axis_positions.defined())
    return rope_angles(batch.positions, c.head_size, c.rope_theta, wide, c.rope_scaling);
  return axis_rope_angles({batch.axis_positions, c.rope_sections}, c.head_size, c.rope_theta, wide);
}

// n1 [T, C] -> attention output [T, C].
at::Tensor attend(const Layer& layer, const SegmentContext& context, const at::Tensor& n1) {
  const TextConfig& c = layer.config;
  const ParamView& params = context.params;
  const auto heads = [&](const Linear& linear, int64_t count, ParamId norm = -1) {
    const at::Tensor x = apply(linear, params, n1).view({n1.size(0), count, c.head_size});
    return norm < 0 ? x : rms_norm(x, params.get(norm), c.norm_eps);
  };
  const RopeAngles angles = angles_of(c, context.batch, n1.scalar_type() == at::kDouble);
  const at::Tensor q = rope(heads(layer.q, c.heads, layer.q_norm), angles),
                   k = rope(heads(layer.k, c.kv_heads, layer.k_norm), angles);
  const at::Tensor v = heads(layer.v, c.kv_heads);
  const std::vector<int64_t>& borders = context.batch.cu_seqlens;
  const at::Tensor mixed =
      context.kv_cache != nullptr
          ? cached_attention({q, k, v}, borders, *context.kv_cache,
                             {.layer = layer.number, .window = c.sliding_window})
          : packed_attention(q, k, v, borders, c.sliding_window);
  return apply(layer.o, params, mixed);
}

SegmentCost attention_cost(const TextConfig& c, const Sizes& sizes) {
  const auto tokens = static_cast<double>(sizes.tokens), hidden = static_cast<double>(c.hidden);
  const auto q = static_cast<double>(c.heads * c.head_size),
             kv = static_cast<double>(c.kv_heads * c.head_size);
  SegmentCost cost;
  cost.attention_flops = 4 * sizes.attention_pairs * q;
  cost.forward_flops = tokens * 2 * (2 * hidden * q + 2 * hidden * kv) + cost.attention_flops;
  cost.saved_bytes = tokens * (4 * q + 4 * kv + 4 * static_cast<double>(c.heads));
  return cost;
}

SegmentCost mlp_cost(const TextConfig& c, const Sizes& sizes) {
  const auto tokens = static_cast<double>(sizes.tokens);
  const auto hidden = static_cast<double>(c.hidden), inner = static_cast<double>(c.intermediate);
  return {.forward_flops = tokens * 6 * hidden * inner, .saved_bytes = tokens * 6 * inner};
}

/// A norm keeps its input and its output, 2 bytes an element.
SegmentCost norm_cost(const TextConfig& c, const Sizes& sizes) {
  return {.saved_bytes = static_cast<double>(sizes.tokens * c.hidden) * 4};
}

std::vector<ParamId> ids_of(std::initializer_list<const Linear*> linears) {
  std::vector<ParamId> ids;
  for (const Linear* linear : linears) append_params(ids, *linear);
  return ids;
}

Boundary on_tensor_axis(Slot slot, Placement from, Placement to) {
  return {.slot = slot, .axis = dist::MeshAxis::kTensor, .from = from, .to = to};
}

// Slots between the pieces of one layer.
enum Local : Slot {
  kN1 = kLocalSlot,
  kAttended = kLocalSlot - 1,
  kMiddle = kLocalSlot - 2,
  kN2 = kLocalSlot - 3,
  kMlp = kLocalSlot - 4
};

Segment norm_piece(const Layer& layer, Slot in) {
  Segment s{.name = "norm1", .in = {in}, .out = {kN1}, .params = {layer.norm1}};
  s.forward = [layer](const SegmentContext& context, Inputs x) {
    return Values{rms_norm(x[0], context.params.get(layer.norm1), layer.config.norm_eps)};
  };
  s.cost = [c = layer.config](const Sizes& sizes) { return norm_cost(c, sizes); };
  return s;
}

Segment attention_piece(const Layer& layer) {
  Segment s{.name = "attention", .in = {kN1}, .out = {kAttended}};
  s.params = ids_of({&layer.q, &layer.k, &layer.v, &layer.o});
  for (const ParamId norm : {layer.q_norm, layer.k_norm})
    if (norm >= 0) s.params.push_back(norm);
  s.forward = [layer](const SegmentContext& context, Inputs x) {
    return Values{attend(layer, context, x[0])};
  };
  s.cost = [c = layer.config](const Sizes& sizes) { return attention_cost(c, sizes); };
  return s;
}

Segment residual_norm_piece(const Layer& layer, Slot in) {
  Segment s{.name = "norm2", .in = {in, kAttended}, .out = {kMiddle, kN2}, .params = {layer.norm2}};
  s.forward = [layer](const SegmentContext& context, Inputs x) {
    const SumAndNorm both =
        residual_rms_norm(x[0], x[1], context.params.get(layer.norm2), layer.config.norm_eps);
    return Values{both.sum, both.norm};
  };
  s.cost = [c = layer.config](const Sizes& sizes) { return norm_cost(c, sizes); };
  return s;
}

Segment mlp_piece(const Layer& layer) {
  Segment s{.name = "mlp", .in = {kN2}, .out = {kMlp}};
  s.params = ids_of({&layer.gate, &layer.up, &layer.down});
  s.forward = [layer](const SegmentContext& context, Inputs x) {
    const ParamView& params = context.params;
    const at::Tensor inner = swiglu(apply(layer.gate, params, x[0]), apply(layer.up, params, x[0]));
    return Values{apply(layer.down, params, inner)};
  };
  s.cost = [c = layer.config](const Sizes& sizes) { return mlp_cost(c, sizes); };
  return s;
}

Segment residual_piece(Slot out) {
  Segment s{.name = "residual", .in = {kMiddle, kMlp}, .out = {out}};
  s.forward = [](const SegmentContext&, Inputs x) { return Values{x[0] + x[1]}; };
  return s;
}

/// "NAME.attention" up to the attention's output, which lies in slot `attended`, and "NAME.mlp" for
/// the rest: what selective recompute chooses between.
std::vector<Step> two_segments(const std::string& name, const std::vector<Step>& pieces,
                               Slot attended) {
  std::vector<Step> first, second;
  for (const Step& step : pieces) {
    if (!std::holds_alternative<Segment>(step)) continue;
    Segment piece = std::get<Segment>(step);
    const bool of_attention = piece.name == "norm1" || piece.name == "attention";
    std::ranges::replace(piece.in, Slot{kAttended}, attended);
    std::ranges::replace(piece.out, Slot{kAttended}, attended);
    (of_attention ? first : second).emplace_back(std::move(piece));
  }
  std::vector<Step> both;
  both.emplace_back(join(name + ".attention", first));
  both.emplace_back(join(name + ".mlp", second));
  return both;
}

}  // namespace

ParamId declare_embedding_table(Model& model, const TextConfig& config, const std::string& prefix) {
  return model.add_param({.name = prefix + "model.embed_tokens.weight",
                          .shape = {config.vocab, config.hidden},
                          .decay = true,
                          .split_dim = 0});
}

std::vector<Step> decoder_layer_pieces(Model& model, const TextConfig& config,
                                       const std::string& prefix, int64_t number, Slot in,
                                       Slot out) {
  const std::string at = prefix + "model.layers." + std::to_string(number) + ".";
  const Layer layer = declare_layer(model, config, at, number);
  return {norm_piece(layer, in),
          on_tensor_axis(kN1, Placement::kSplit, Placement::kWhole),
          attention_piece(layer),
          on_tensor_axis(kAttended, Placement::kPartial, Placement::kSplit),
          residual_norm_piece(layer, in),
          on_tensor_axis(kN2, Placement::kSplit, Placement::kWhole),
          mlp_piece(layer),
          on_tensor_axis(kMlp, Placement::kPartial, Placement::kSplit),
          residual_piece(out)};
}

void add_llama(Model& model, const TextConfig& config, const std::string& prefix, Slot x,
               ParamId table) {
  for (int64_t i = 0; i < config.layers; ++i) {
    const Slot out = model.add_slot("hidden." + std::to_string(i + 1));
    const std::string name = "language.layers." + std::to_string(i);
    const Slot attended = model.add_slot("attended." + std::to_string(i));
    const auto pieces = decoder_layer_pieces(model, config, prefix, i, x, out);
    model.blocks.push_back({name, Part::kLanguage, two_segments(name, pieces, attended)});
    x = out;
  }
  add_language_head(model, config, prefix, x, table);
}

}  // namespace mm::model
