#pragma once
#include <ATen/core/Tensor.h>

namespace mm::model {

/// One micro-batch of a diffusion model: N pictures of one size, [C, H, W] each (pixels in [-1, 1],
/// or latents that are scaled already). What a model or an objective does not use is undefined.
/// Captions as ids lie in Batch::tokens and cu_seqlens, one sample a picture.
struct DiffusionInput {
  /// Training: clean pictures [N, C, H, W]; undefined where a VAE's blocks make them from
  /// Batch::pixel_values. Sampling: undefined.
  at::Tensor clean;
  at::Tensor noise;  ///< [N, C, H, W] standard normal; in training
  /// [N, C, H, W] standard normal: the draw from what a VAE's encoder gives; undefined: its mean.
  at::Tensor latent_noise;
  /// Sampling: what the model is asked about, [N, C, H, W]; undefined in training, where the
  /// objective makes it of clean, noise and time.
  at::Tensor noisy;
  /// [N] fp32 (float64 in float64 runs): DDPM step index in [0, T), or 1000 * sigma of a flow: what
  /// the time embedding takes.
  at::Tensor times;
  at::Tensor sigmas;           ///< [N]: of flows, in [0, 1]
  at::Tensor labels;           ///< [N] int64; the number of classes stands for no label
  at::Tensor captions;         ///< [N, L, D]: stored embeddings
  at::Tensor caption_mask;     ///< [N, L] bool: true keeps
  at::Tensor caption_dropped;  ///< [N] bool: the null caption takes its place
  at::Tensor pooled;           ///< [N, P]: pooled caption embeddings (SD3)
  at::Tensor resolutions;      ///< [N, 2] height, width in pixels (PixArt's size embedders)
  at::Tensor aspect_ratios;    ///< [N, 1] height / width
  /// [N] fp32 (float64): what each picture's loss is multiplied by; 0 for fillers. Undefined: 1.
  at::Tensor weights;
};

}  // namespace mm::model
