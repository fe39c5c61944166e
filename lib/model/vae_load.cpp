#include "lib/model/vae_load.h"

#include <ATen/ATen.h>

#include "lib/base/error.h"
#include "lib/ckpt/diffusers_names.h"
#include "lib/model/strict_load.h"
#include "lib/model/vae_training.h"

namespace mm::model {
namespace {

std::vector<at::Tensor> as_dtype(const std::vector<at::Tensor>& values, at::ScalarType dtype) {
  std::vector<at::Tensor> out;
  for (const at::Tensor& value : values) out.push_back(value.to(dtype));
  return out;
}

/// Only the parameters: the order is that of build_vae.
Model declared(const VaeConfig& config) {
  Model model;
  declare_vae_encoder(model, config, "");
  declare_vae_decoder(model, config, "");
  return model;
}

}  // namespace

Vae::Vae(const VaeConfig& config, const std::vector<at::Tensor>& values, at::ScalarType dtype)
    : config_(config),
      encoder_(declare_vae_encoder(model_, config, "")),
      decoder_(declare_vae_decoder(model_, config, "")),
      params_(model_, as_dtype(values, dtype), std::vector<bool>(values.size(), false)) {}

at::Tensor Vae::moments(const at::Tensor& pictures) const {
  const int64_t factor = config_.factor();
  if (pictures.size(2) % factor != 0 || pictures.size(3) % factor != 0)
    throw UsageError("pictures of {} x {} pixels; this VAE takes multiples of {}", pictures.size(3),
                     pictures.size(2), factor);
  return run_stages(encoder_, params_, pictures.to(params_.get(0).scalar_type()));
}

at::Tensor Vae::decode(const at::Tensor& latents) const {
  const at::Tensor z = unscaled_latents(config_, latents.to(params_.get(0).scalar_type()));
  return run_stages(decoder_, params_, z);
}

LoadedVae load_vae(const std::filesystem::path& directory) {
  const VaeConfig config = read_vae_config(directory / "config.json");
  auto values = load_strictly(declared(config), ckpt::HfWeights::open(directory),
                              {.origin = directory.string(), .respell = ckpt::published_vae_name});
  return {config, std::move(values)};
}

}  // namespace mm::model
