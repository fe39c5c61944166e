#pragma once
#include "lib/model/block.h"
#include "lib/model/vae_config.h"

namespace mm::model {

/// What a VAE learns from, per picture of E numbers (pixels times channels):
///   loss = (sum of error + kl_weight * KL(posterior || standard normal)) / E
/// with error |x - x'| or (x - x')^2. The published autoencoders' objective, divided by E so that
/// pictures of any size weigh alike; DiffusionInput::weights multiplies it.
struct VaeLoss {
  enum class Error { kAbsolute, kSquared };
  Error error = Error::kAbsolute;
  double kl_weight = 1e-6;
};

/// An autoencoder to be trained, in program order: encoder, draw, decoder, loss. Pictures are
/// DiffusionInput::clean, in [-1, 1]; latents are drawn with DiffusionInput::noise (undefined: the
/// mean). Slots: "vae.encoder.out" (moments), "vae.z" (not scaled), "vae.decoder.out" (pictures),
/// "vae.terms" [N, 2] float64 (error and KL of each picture, divided by E, without weights or
/// gradient). Parameters are named as diffusers' files.
Model build_vae(const VaeConfig& config, const VaeLoss& loss = {});

}  // namespace mm::model
