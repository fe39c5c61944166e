#include "lib/model/vae.h"

#include <ATen/ATen.h>

#include "lib/base/error.h"
#include "lib/model/diffusion_input.h"
#include "lib/model/vae_layers.h"

namespace mm::model {
namespace {

constexpr double kLeastLogVariance = -30, kMostLogVariance = 20;

/// Layers that run one after the other as one stage.
class StageBuilder {
 public:
  explicit StageBuilder(std::string name) { stage_.name = std::move(name); }

  /// `share`: pixels of the layer's output over those of the whole picture.
  template <typename Layer>
  StageBuilder& add(const Layer& layer, double share) {
    append_params(stage_.params, layer);
    steps_.push_back(
        [layer](const ParamView& params, const at::Tensor& x) { return apply(layer, params, x); });
    count(layer, share);
    return *this;
  }
  StageBuilder& then(at::Tensor (*function)(const at::Tensor&)) {
    steps_.push_back([function](const ParamView&, const at::Tensor& x) { return function(x); });
    return *this;
  }
  VaeStage take() {
    stage_.forward = [steps = std::move(steps_)](const ParamView& params, const at::Tensor& x) {
      at::Tensor y = x;
      for (const auto& step : steps) y = step(params, y);
      return y;
    };
    return std::move(stage_);
  }

 private:
  void count(const Convolution& layer, double share) {
    stage_.cost.per_pixel += share * weights_of(layer);
    stage_.cost.saved += share * static_cast<double>(layer.in);
  }
  void count(const GroupNorm& layer, double share) {
    stage_.cost.saved += share * static_cast<double>(layer.channels);
  }
  void count(const ResNet& layer, double share) {
    stage_.cost.per_pixel += share * weights_of(layer);
    stage_.cost.saved += share * static_cast<double>(3 * layer.conv1.in + 3 * layer.conv1.out);
  }
  void count(const PixelAttention& layer, double share) {
    const auto width = static_cast<double>(layer.norm.channels);
    stage_.cost.per_pixel += share * 4 * width * width;
    stage_.cost.saved += share * 6 * width;
    stage_.cost.attention_pixels = share;
    stage_.cost.attention_width = width;
  }

  VaeStage stage_;
  std::vector<std::function<at::Tensor(const ParamView&, const at::Tensor&)>> steps_;
};

/// Pixels of resolution `level` over those of the picture.
double share_of(size_t level) { return 1.0 / static_cast<double>(int64_t{1} << (2 * level)); }

VaeStage middle(VaeDeclare& declare, const VaeConfig& c, const std::string& part) {
  const int64_t width = c.channels.back();
  const double share = share_of(c.channels.size() - 1);
  StageBuilder stage("vae." + part + ".middle");
  stage.add(declare.resnet("mid_block.resnets.0", {width, width}), share);
  if (c.mid_attention) stage.add(declare.attention("mid_block.attentions.0", width), share);
  stage.add(declare.resnet("mid_block.resnets.1", {width, width}), share);
  return stage.take();
}

VaeStage down_block(VaeDeclare& declare, const VaeConfig& c, size_t level) {
  const std::string at = "down_blocks." + std::to_string(level) + ".";
  const int64_t out = c.channels[level];
  StageBuilder stage("vae.encoder." + std::to_string(level));
  for (int64_t i = 0; i < c.layers_per_block; ++i) {
    const int64_t in = i > 0 || level == 0 ? out : c.channels[level - 1];
    stage.add(declare.resnet(at + "resnets." + std::to_string(i), {in, out}), share_of(level));
  }
  if (level + 1 < c.channels.size())
    stage.add(declare.conv(at + "downsamplers.0.conv", {out, out}, 3, 2), share_of(level + 1));
  return stage.take();
}

/// `number` counts from the smallest resolution.
VaeStage up_block(VaeDeclare& declare, const VaeConfig& c, size_t number) {
  const std::string at = "up_blocks." + std::to_string(number) + ".";
  const size_t level = c.channels.size() - 1 - number;
  const int64_t out = c.channels[level];
  StageBuilder stage("vae.decoder." + std::to_string(number));
  for (int64_t i = 0; i <= c.layers_per_block; ++i) {
    const int64_t in = i > 0 || number == 0 ? out : c.channels[level + 1];
    stage.add(declare.resnet(at + "resnets." + std::to_string(i), {in, out}), share_of(level));
  }
  if (level > 0)
    stage.then(twice_as_large)
        .add(declare.conv(at + "upsamplers.0.conv", {out, out}, 3), share_of(level - 1));
  return stage.take();
}

VaeStage single_conv(const std::string& name, const Convolution& conv, double share) {
  return StageBuilder(name).add(conv, share).take();
}

const at::Tensor& pixel_values(const Batch& batch) { return batch.pixel_values; }

Segment draw_segment(const VaeConfig& config, Slot moments, Slot out) {
  Segment segment{.name = "vae.draw", .in = {moments}, .out = {out}};
  segment.forward = [config](const SegmentContext& context, std::span<const at::Tensor> in) {
    const DiffusionInput* input = context.batch.diffusion.get();
    const at::Tensor noise = input == nullptr ? at::Tensor() : input->latent_noise;
    return std::vector<at::Tensor>{scaled_latents(config, posterior_of(in[0]).sample(noise))};
  };
  return segment;
}

}  // namespace

std::vector<VaeStage> declare_vae_encoder(Model& model, const VaeConfig& c,
                                          const std::string& prefix) {
  VaeDeclare declare(model, prefix + "encoder.", c.groups), beside(model, prefix, c.groups);
  const double whole = 1, last = share_of(c.channels.size() - 1);
  const int64_t moments = 2 * c.latent_channels;
  std::vector<VaeStage> stages{single_conv(
      "vae.encoder.in", declare.conv("conv_in", {c.in_channels, c.channels[0]}, 3), whole)};
  for (size_t level = 0; level < c.channels.size(); ++level)
    stages.push_back(down_block(declare, c, level));
  stages.push_back(middle(declare, c, "encoder"));
  StageBuilder out("vae.encoder.out");
  out.add(declare.norm("conv_norm_out", c.channels.back()), last)
      .then(at::silu)
      .add(declare.conv("conv_out", {c.channels.back(), moments}, 3), last);
  if (c.quant_conv) out.add(beside.conv("quant_conv", {moments, moments}, 1), last);
  stages.push_back(out.take());
  return stages;
}

std::vector<VaeStage> declare_vae_decoder(Model& model, const VaeConfig& c,
                                          const std::string& prefix) {
  VaeDeclare declare(model, prefix + "decoder.", c.groups), beside(model, prefix, c.groups);
  const double whole = 1, last = share_of(c.channels.size() - 1);
  StageBuilder in("vae.decoder.in");
  if (c.post_quant_conv)
    in.add(beside.conv("post_quant_conv", {c.latent_channels, c.latent_channels}, 1), last);
  in.add(declare.conv("conv_in", {c.latent_channels, c.channels.back()}, 3), last);
  std::vector<VaeStage> stages{in.take()};
  stages.push_back(middle(declare, c, "decoder"));
  for (size_t number = 0; number < c.channels.size(); ++number)
    stages.push_back(up_block(declare, c, number));
  stages.push_back(StageBuilder("vae.decoder.out")
                       .add(declare.norm("conv_norm_out", c.channels[0]), whole)
                       .then(at::silu)
                       .add(declare.conv("conv_out", {c.channels[0], c.out_channels}, 3), whole)
                       .take());
  return stages;
}

at::Tensor run_stages(const std::vector<VaeStage>& stages, const ParamView& params, at::Tensor x) {
  for (const VaeStage& stage : stages) x = stage.forward(params, x);
  return x;
}

Posterior posterior_of(const at::Tensor& moments) {
  const auto halves = moments.chunk(2, 1);
  return {halves[0], halves[1].clamp(kLeastLogVariance, kMostLogVariance)};
}

at::Tensor Posterior::sample(const at::Tensor& noise) const {
  if (!noise.defined()) return mean;
  MM_CHECK(noise.sizes() == mean.sizes(), "noise of {} elements for {} latents", noise.numel(),
           mean.numel());
  return mean + (log_variance * 0.5).exp() * noise.to(mean.scalar_type());
}

at::Tensor scaled_latents(const VaeConfig& config, const at::Tensor& z) {
  return (z - config.shift) * config.scale;
}

at::Tensor unscaled_latents(const VaeConfig& config, const at::Tensor& latents) {
  return latents / config.scale + config.shift;
}

Slot add_vae_stage(Model& model, const VaeStage& stage, Slot in, const VaeInput& input) {
  const Slot out = model.add_slot(stage.name);
  Segment segment{.name = stage.name, .out = {out}, .params = stage.params};
  if (in >= 0) segment.in = {in};
  segment.forward = [forward = stage.forward, input, first = stage.params.front()](
                        const SegmentContext& context, std::span<const at::Tensor> x) {
    const at::Tensor from = x.empty() ? input.pixels(context.batch) : x[0];
    const at::ScalarType dtype = context.params.get(first).scalar_type();
    return std::vector<at::Tensor>{forward(context.params, from.to(dtype))};
  };
  segment.cost = [cost = stage.cost, each = input.pixels_per_patch](const Sizes& sizes) {
    const double pixels = static_cast<double>(sizes.patches) * each,
                 all = static_cast<double>(sizes.images) * pixels;
    SegmentCost total;
    const double row = pixels * cost.attention_pixels;
    total.attention_flops =
        4 * static_cast<double>(sizes.images) * row * row * cost.attention_width;
    total.forward_flops = 2 * all * cost.per_pixel + total.attention_flops;
    total.saved_bytes = 4 * all * cost.saved;  // as fp32, which autoencoders mostly run in
    return total;
  };
  model.blocks.push_back({stage.name, Part::kVae, {std::move(segment)}});
  return out;
}

Slot add_vae_encoder(Model& model, const VaeConfig& config, const std::string& prefix,
                     int64_t patch) {
  const auto side = static_cast<double>(patch * config.factor());
  Slot x = -1;
  for (const VaeStage& stage : declare_vae_encoder(model, config, prefix))
    x = add_vae_stage(model, stage, x, {.pixels = pixel_values, .pixels_per_patch = side * side});
  const Slot latents = model.add_slot("vae.latents");
  model.blocks.push_back({"vae.draw", Part::kVae, {draw_segment(config, x, latents)}});
  return latents;
}

}  // namespace mm::model
