#include "lib/model/projector.h"

#include <ATen/ATen.h>

#include "lib/model/linear.h"

namespace mm::model {
namespace {

Linear declare_linear(Model& model, const std::string& name, int64_t out, int64_t in, bool bias) {
  Linear linear;
  linear.weight = model.add_param(
      {.name = name + ".weight", .shape = {out, in}, .part = Part::kProjector, .decay = true});
  if (bias) {
    linear.bias = model.add_param(
        {.name = name + ".bias", .shape = {out}, .part = Part::kProjector, .init = Init::kZeros});
  }
  return linear;
}

SegmentCost projector_cost(const LlavaConfig& config, const Sizes& sizes) {
  const auto rows = static_cast<double>(sizes.images * config.patches_per_image());
  const auto v = static_cast<double>(config.vision.hidden),
             h = static_cast<double>(config.text.hidden);
  if (config.projector == ProjectorKind::kLinear)
    return {.forward_flops = 2 * rows * v * h, .saved_bytes = rows * 2 * v};
  return {.forward_flops = 2 * rows * (v * h + h * h), .saved_bytes = rows * 2 * (v + 2 * h)};
}

/// One layer or two.
std::vector<Linear> declare_layers(Model& model, const LlavaConfig& config) {
  const int64_t in = config.vision.hidden, out = config.text.hidden;
  const bool bias = config.projector_bias;
  const std::string prefix = "multi_modal_projector.linear";
  if (config.projector == ProjectorKind::kLinear)
    return {declare_linear(model, prefix, out, in, bias)};
  const Linear first = declare_linear(model, prefix + "_1", out, in, bias);
  return {first, declare_linear(model, prefix + "_2", out, out, bias)};
}

}  // namespace

Slot add_projector(Model& model, const LlavaConfig& config, Slot features) {
  const std::vector<Linear> layers = declare_layers(model, config);
  const int64_t skip = config.keep_first_row ? 0 : 1;
  const Slot out = model.add_slot(config.has_tiles() ? "tile_features" : "features");
  Segment segment{.name = "projector", .in = {features}, .out = {out}};
  for (const Linear& layer : layers) append_params(segment.params, layer);
  segment.forward = [=](const SegmentContext& context, std::span<const at::Tensor> in) {
    const at::Tensor rows = in[0].narrow(1, skip, in[0].size(1) - skip).flatten(0, 1);
    at::Tensor out_rows = apply(layers.front(), context.params, rows);
    if (layers.size() > 1) out_rows = apply(layers.back(), context.params, at::gelu(out_rows));
    return std::vector<at::Tensor>{out_rows};
  };
  segment.cost = [config](const Sizes& sizes) { return projector_cost(config, sizes); };
  model.blocks.push_back({"projector", Part::kProjector, {std::move(segment)}});
  return out;
}

}  // namespace mm::model
