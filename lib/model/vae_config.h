#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

#include "lib/base/json.h"

namespace mm::model {

/// A diffusers AutoencoderKL, as its config.json has it. Defaults are diffusers'.
struct VaeConfig {
  int64_t in_channels = 3, out_channels = 3, latent_channels = 4;
  std::vector<int64_t> channels{64};  ///< block_out_channels: of the resolutions, widest first
  int64_t layers_per_block = 1;       ///< ResNets of a down block; up blocks have one more
  int64_t groups = 32;                ///< of every GroupNorm
  bool mid_attention = true, quant_conv = true, post_quant_conv = true;
  /// Latents are (z - shift) * scale for the diffusion model (field case C52); of this VAE alone,
  /// never a constant.
  double scale = 0.18215, shift = 0;
  int64_t sample_size = 32;  ///< pixels a side it was trained with; says nothing about its inputs
  bool fp32_only = true;     ///< force_upcast: half precision overflows

  /// Pixels a side of one latent.
  int64_t factor() const { return int64_t{1} << (channels.size() - 1); }
};

/// Throws DataError, naming file and key: another class, another activation or block type, channels
/// that the groups do not divide, latents with means of their own.
VaeConfig read_vae_config(const std::filesystem::path& path);
VaeConfig vae_config_from_json(const Json& json, const std::string& where);
/// What diffusers reads as the same model.
Json to_json(const VaeConfig& config);

}  // namespace mm::model
