#include "lib/model/diffusion_load.h"

#include "lib/model/strict_load.h"

namespace mm::model {
namespace {

constexpr std::string_view kFirst = "transformer_blocks.0.norm1.emb.";

}  // namespace

std::vector<std::string> repeated_names(const DiffusionConfig& config, const std::string& name) {
  std::vector<std::string> names;
  if (config.family != DiffusionFamily::kDit || config.own_embedders || !name.starts_with(kFirst))
    return names;
  for (int64_t i = 1; i < config.layers; ++i)
    names.push_back("transformer_blocks." + std::to_string(i) + ".norm1.emb." +
                    name.substr(kFirst.size()));
  return names;
}

std::vector<at::Tensor> load_diffusion_weights(const Model& model, const DiffusionConfig& config,
                                               const ckpt::HfWeights& weights,
                                               const std::string& origin) {
  StrictLoad options{.origin = origin};
  for (const ParamSpec& spec : model.params) {
    for (const std::string& copy : repeated_names(config, spec.name))
      options.copies.emplace_back(copy, spec.name);
  }
  return load_strictly(model, weights, options);
}

LoadedDiffusion load_diffusion(const std::filesystem::path& directory, const Objective& objective) {
  const DiffusionConfig config = read_diffusion_config(directory / "config.json");
  Model model = build_diffusion(config, objective);
  auto values =
      load_diffusion_weights(model, config, ckpt::HfWeights::open(directory), directory.string());
  return {config, std::move(model), std::move(values)};
}

}  // namespace mm::model
