#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/json.h"

namespace mm::ckpt {

/// config.json's "_class_name", which marks a diffusers directory ("AutoencoderKL",
/// "DiTTransformer2DModel", ...); empty where there is none.
std::string diffusers_class(const Json& config);

/// What weight files of this model are called, without ".safetensors":
/// "diffusion_pytorch_model" in a diffusers directory, else "model".
std::string weights_base_name(const Json& config);

/// The present name of an AutoencoderKL's tensor: of the middle attention's `query`, `key`,
/// `value`, `proj_attn` in older files `to_q`, `to_k`, `to_v`, `to_out.0`; others as they are.
std::optional<std::string> published_vae_name(std::string_view name);

}  // namespace mm::ckpt
