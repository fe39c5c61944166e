#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "lib/model/block.h"
#include "lib/model/vae_config.h"

namespace mm::model {

// AutoencoderKL. N pictures of one size [N, 3, H, W] with pixels in [-1, 1], H and W multiples of
// f = VaeConfig::factor(); latents [N, C, H/f, W/f].

/// One block of an autoencoder: [N, c, h, w] in and out.
struct VaeStage {
  std::string name;
  std::vector<ParamId> params;
  std::function<at::Tensor(const ParamView&, const at::Tensor&)> forward;
  /// All three for a picture of `pixels` of the encoder's input or the decoder's output.
  struct Cost {
    double per_pixel = 0;         ///< multiply-adds with weights
    double saved = 0;             ///< numbers kept for the backward, per pixel
    double attention_pixels = 0;  ///< pixels a row of the attention, as a share of the picture's
    double attention_width = 0;
  } cost;
};

/// Declares the parameters under `prefix` + "encoder." ("decoder.") and the 1x1 convolutions beside
/// them: [N, 3, H, W] -> moments [N, 2C, H/f, W/f], and latents -> pictures.
std::vector<VaeStage> declare_vae_encoder(Model& model, const VaeConfig& config,
                                          const std::string& prefix);
std::vector<VaeStage> declare_vae_decoder(Model& model, const VaeConfig& config,
                                          const std::string& prefix);

/// All stages in order.
at::Tensor run_stages(const std::vector<VaeStage>& stages, const ParamView& params, at::Tensor x);

/// Halves of the moments; the logarithm of the variance clamped to [-30, 20].
struct Posterior {
  at::Tensor mean, log_variance;
  /// mean + exp(log_variance / 2) * noise; the mean where `noise` is undefined.
  at::Tensor sample(const at::Tensor& noise) const;
};
Posterior posterior_of(const at::Tensor& moments);

/// (z - shift) * scale and back (field case C52).
at::Tensor scaled_latents(const VaeConfig& config, const at::Tensor& z);
at::Tensor unscaled_latents(const VaeConfig& config, const at::Tensor& latents);

/// One stage as one block of Part::kVae on slot `in`, -1: pixels that `input` takes from the batch.
/// `pixels_per_patch`: pixels of what Sizes::patches counts, for the cost.
struct VaeInput {
  std::function<at::Tensor(const Batch&)> pixels;
  double pixels_per_patch = 1;
};
Slot add_vae_stage(Model& model, const VaeStage& stage, Slot in, const VaeInput& input);

/// Appends the encoder in front of a diffusion transformer: pictures from Batch::pixel_values, in
/// [-1, 1], are encoded, drawn with DiffusionInput::latent_noise (undefined: the mean) and scaled.
/// Returns the slot "vae.latents" [N, C, H/f, W/f], in the dtype of the weights. `patch` is the
/// side of the transformer's patches in latents, for the cost.
Slot add_vae_encoder(Model& model, const VaeConfig& config, const std::string& prefix,
                     int64_t patch);

}  // namespace mm::model
