#pragma once
#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "lib/ckpt/hf_index.h"
#include "lib/model/diffusion.h"

namespace mm::model {

/// One value per parameter of `model`, in the dtype of the files, named as diffusers names them.
/// Nothing is left random: throws DataError as load_strictly. DiT's time and label embedders, which
/// diffusers repeats in every block, must be equal in all of them unless config.own_embedders.
std::vector<at::Tensor> load_diffusion_weights(const Model& model, const DiffusionConfig& config,
                                               const ckpt::HfWeights& weights,
                                               const std::string& origin);

/// A directory of diffusers: config.json and diffusion_pytorch_model.safetensors (or its index).
struct LoadedDiffusion {
  DiffusionConfig config;
  Model model;
  std::vector<at::Tensor> values;
};
LoadedDiffusion load_diffusion(const std::filesystem::path& directory, const Objective& objective);

/// Names under which diffusers' file holds more copies of the parameter `name`, `name` not among
/// them: DiT's embedders of block 0 for blocks 1 and up. Writing every parameter under its name and
/// these gives the file back, byte for byte.
std::vector<std::string> repeated_names(const DiffusionConfig& config, const std::string& name);

}  // namespace mm::model
