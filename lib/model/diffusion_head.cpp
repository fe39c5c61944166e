#include "lib/model/diffusion_head.h"

#include <ATen/ATen.h>

#include "lib/model/ada_norm.h"

namespace mm::model {
namespace {

constexpr double kFinalNormEps = 1e-6;

struct Head {
  DiffusionBuild build;
  FinalLayer layer;
};

/// {loss, prediction, sample losses, squared part, variance part}.
using Outputs = std::vector<at::Tensor>;

at::Tensor predict(const Head& head, const SegmentContext& context, const at::Tensor& tokens,
                   const at::Tensor& conditioning, const at::Tensor& like) {
  const auto [shift, scale] = head.layer.shift_and_scale(context, conditioning);
  const at::Tensor x = modulated_norm(tokens, shift, scale, kFinalNormEps);
  const int64_t patch = head.build.config.patch;
  return fold_patches(apply(head.layer.linear, context.params, x).to(like.scalar_type()), patch,
                      like.size(2) / patch, like.size(3) / patch);
}

Outputs run_head(const Head& head, const SegmentContext& context, std::span<const at::Tensor> in) {
  const DiffusionInput input = head.build.input(context.batch);
  const bool sampling = input.noisy.defined();
  const at::Tensor& like = sampling ? input.noisy : input.noise;
  const at::Tensor output = predict(head, context, in[0], in[1], like);
  const at::Tensor shown = context.batch.want_logits
                               ? output.detach()
                               : at::empty({0, output.size(1), 0, 0}, output.options());
  if (sampling) {
    const at::Tensor none = at::zeros({output.size(0)}, like.options().dtype(at::kDouble));
    return {output.sum() * 0, shown, none, none, none};
  }
  const Process::Losses losses =
      head.build.process->losses(output, head.build.clean_pictures(input, in), input);
  const at::Tensor weighted = input.weights.defined()
                                  ? losses.total * input.weights.to(losses.total.options())
                                  : losses.total;
  const auto wide = [](const at::Tensor& x) { return x.detach().to(at::kDouble); };
  return {weighted.sum(), shown, wide(losses.total), wide(losses.square),
          wide(losses.variance_term)};
}

SegmentCost head_cost(const DiffusionConfig& c, const Sizes& sizes) {
  const auto rows = static_cast<double>(sizes.patch_rows), n = static_cast<double>(sizes.images),
             h = static_cast<double>(c.hidden());
  const auto out = static_cast<double>(c.out_channels() * c.patch * c.patch);
  return {.forward_flops = 2 * rows * h * out + 4 * n * h * h,
          .saved_bytes = rows * (6 * h + 20 * out)};
}

}  // namespace

void add_diffusion_head(Model& model, const DiffusionBuild& build, const FinalLayer& layer,
                        Slot tokens, Slot conditioning) {
  model.loss_slot = model.add_slot("loss");
  model.logits_slot = model.add_slot("prediction");
  model.sample_losses_slot = model.add_slot("sample_losses");
  const Slot square = model.add_slot("square_losses"), variance = model.add_slot("variance_losses");
  Segment segment{
      .name = "head",
      .in = {tokens, conditioning},
      .out = {model.loss_slot, model.logits_slot, model.sample_losses_slot, square, variance},
      .params = layer.modulation_params,
      .yields_loss = true};
  if (build.clean >= 0) segment.in.push_back(build.clean);
  append_params(segment.params, layer.linear);
  segment.forward = [head = Head{build, layer}](const SegmentContext& context,
                                                std::span<const at::Tensor> in) {
    return run_head(head, context, in);
  };
  segment.cost = [c = build.config](const Sizes& sizes) { return head_cost(c, sizes); };
  model.blocks.push_back({"head", Part::kTransformer, {std::move(segment)}});
}

}  // namespace mm::model
