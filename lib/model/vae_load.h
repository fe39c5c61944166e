#pragma once
#include <ATen/core/Tensor.h>

#include <filesystem>
#include <vector>

#include "lib/model/block.h"
#include "lib/model/eager.h"
#include "lib/model/vae.h"
#include "lib/model/vae_config.h"

namespace mm::model {

/// An autoencoder to be used, not trained: frozen parameters in one dtype, encoder and decoder.
/// Const members may be called from any thread. Run under at::NoGradGuard.
class Vae {
 public:
  /// `values`: of `build_vae(config)`'s parameters.
  Vae(const VaeConfig& config, const std::vector<at::Tensor>& values, at::ScalarType dtype);

  const VaeConfig& config() const { return config_; }
  /// Pictures [N, 3, H, W] in [-1, 1] -> [N, 2C, H/f, W/f]. Throws UsageError for sides that are no
  /// multiple of the factor.
  at::Tensor moments(const at::Tensor& pictures) const;
  /// Scaled latents as a diffusion model has them -> pictures, about [-1, 1], not clamped.
  at::Tensor decode(const at::Tensor& latents) const;

 private:
  VaeConfig config_;
  Model model_;
  std::vector<VaeStage> encoder_, decoder_;
  SimpleParams params_;
};

/// A VAE read from a diffusers directory: config.json and its safetensors file or files. The middle
/// attention may have either spelling and be stored as 1x1 convolutions. Throws as load_strictly
/// and read_vae_config.
struct LoadedVae {
  VaeConfig config;
  std::vector<at::Tensor> values;  ///< of build_vae(config)'s parameters, in the files' dtype
};
LoadedVae load_vae(const std::filesystem::path& directory);

}  // namespace mm::model
