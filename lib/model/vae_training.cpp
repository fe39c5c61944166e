#include "lib/model/vae_training.h"

#include <ATen/ATen.h>

#include "lib/base/error.h"
#include "lib/model/diffusion_input.h"
#include "lib/model/vae.h"

namespace mm::model {
namespace {

const DiffusionInput& input_of(const Batch& batch) {
  MM_CHECK(batch.diffusion != nullptr && batch.diffusion->clean.defined(),
           "a VAE learns from DiffusionInput::clean");
  return *batch.diffusion;
}

at::Tensor clean_pictures(const Batch& batch) { return input_of(batch).clean; }

at::Tensor sum_of_each(const at::Tensor& x) { return x.flatten(1).sum(1); }

// Counted in fp32 at least: sums over a picture's numbers.
at::Tensor wide(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
}

/// {loss, sample losses, terms}; in: moments, pictures.
std::vector<at::Tensor> losses_of(const VaeLoss& loss, const Batch& batch,
                                  std::span<const at::Tensor> in) {
  const DiffusionInput& input = input_of(batch);
  const at::Tensor got = wide(in[1]), want = input.clean.to(got.scalar_type());
  MM_CHECK(got.sizes() == want.sizes(), "pictures of {} numbers came back as {}", want.numel(),
           got.numel());
  const at::Tensor gap = got - want;
  const bool squared = loss.error == VaeLoss::Error::kSquared;
  const at::Tensor error = sum_of_each(squared ? gap.square() : gap.abs());
  const Posterior q = posterior_of(wide(in[0]));
  const at::Tensor kl =
      sum_of_each(q.mean.square() + q.log_variance.exp() - 1 - q.log_variance) * 0.5;
  const auto each = static_cast<double>(want.size(1) * want.size(2) * want.size(3));
  const at::Tensor of_pictures = (error + kl * loss.kl_weight) / each;
  const at::Tensor& weights = input.weights;
  at::Tensor sum = weights.defined() ? (of_pictures * weights.to(of_pictures.scalar_type())).sum()
                                     : of_pictures.sum();
  const at::Tensor terms = at::stack({error, kl}, 1) / each;
  return {std::move(sum), of_pictures.detach().to(at::kDouble), terms.detach().to(at::kDouble)};
}

Slot add_draw(Model& model, Slot moments) {
  const Slot z = model.add_slot("vae.z");
  Segment segment{.name = "vae.draw", .in = {moments}, .out = {z}};
  segment.forward = [](const SegmentContext& context, std::span<const at::Tensor> in) {
    return std::vector<at::Tensor>{posterior_of(in[0]).sample(input_of(context.batch).noise)};
  };
  model.blocks.push_back({"vae.draw", Part::kVae, {std::move(segment)}});
  return z;
}

}  // namespace

Model build_vae(const VaeConfig& config, const VaeLoss& loss) {
  if (config.in_channels != config.out_channels)
    throw DataError("a VAE with {} channels in and {} out cannot be trained on pictures",
                    config.in_channels, config.out_channels);
  Model model;
  const VaeInput input{.pixels = clean_pictures};
  Slot x = -1;
  for (const VaeStage& stage : declare_vae_encoder(model, config, ""))
    x = add_vae_stage(model, stage, x, input);
  const Slot moments = x;
  x = add_draw(model, moments);
  for (const VaeStage& stage : declare_vae_decoder(model, config, ""))
    x = add_vae_stage(model, stage, x, input);
  model.loss_slot = model.add_slot("loss");
  model.sample_losses_slot = model.add_slot("sample_losses");
  Segment head{.name = "vae.loss",
               .in = {moments, x},
               .out = {model.loss_slot, model.sample_losses_slot, model.add_slot("vae.terms")},
               .yields_loss = true};
  head.forward = [loss](const SegmentContext& context, std::span<const at::Tensor> in) {
    return losses_of(loss, context.batch, in);
  };
  model.blocks.push_back({"vae.loss", Part::kVae, {std::move(head)}});
  return model;
}

}  // namespace mm::model
