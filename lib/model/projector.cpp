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
  return {.forward_flops = 2 * rows * (v * h + h * h), .saved_bytes = rows * 2 * (v + 2 * h)};
}

}  // namespace

Slot add_projector(Model& model, const LlavaConfig& config, Slot features) {
  const int64_t hidden = config.text.hidden;
  const std::string prefix = "multi_modal_projector.linear_";
  const Linear first =
      declare_linear(model, prefix + "1", hidden, config.vision.hidden, config.projector_bias);
  const Linear second = declare_linear(model, prefix + "2", hidden, hidden, config.projector_bias);
  const int64_t skip = config.keep_first_row ? 0 : 1;
  const Slot out = model.add_slot(config.has_tiles() ? "tile_features" : "features");
  Segment segment{.name = "projector", .in = {features}, .out = {out}};
  append_params(segment.params, first);
  append_params(segment.params, second);
  segment.forward = [=](const SegmentContext& context, std::span<const at::Tensor> in) {
    const at::Tensor rows = in[0].narrow(1, skip, in[0].size(1) - skip).flatten(0, 1);
    const at::Tensor inner = at::gelu(apply(first, context.params, rows));
    return std::vector<at::Tensor>{apply(second, context.params, inner)};
  };
  segment.cost = [config](const Sizes& sizes) { return projector_cost(config, sizes); };
  model.blocks.push_back({"projector", Part::kProjector, {std::move(segment)}});
  return out;
}

}  // namespace mm::model
