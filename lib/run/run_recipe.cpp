#include "lib/run/run_recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lib/base/config.h"
#include "lib/base/toml_text.h"
#include "lib/ckpt/find.h"

namespace mm::run {
namespace {

namespace fs = std::filesystem;
using Normalise = ModelRecipe::Normalise;

/// Files and recipes round them to eight digits or so.
bool same(const std::vector<double>& a, const std::vector<double>& b) {
  constexpr double kRounding = 1e-6;
  return std::ranges::equal(a, b, [](double x, double y) { return std::abs(x - y) < kRounding; });
}
bool same(const Normalise& a, const Normalise& b) {
  return same(a.mean, b.mean) && same(a.std, b.std);
}

/// What the run was trained with; nothing if it has no checkpoint yet.
std::optional<Normalise> trained_with(const fs::path& run) {
  const fs::path resolved = run / "recipe.toml";
  const bool saved =
      std::ranges::any_of(ckpt::list_checkpoints(run / "ckpt"), &ckpt::ListedCheckpoint::committed);
  if (!saved || !fs::is_regular_file(resolved)) return std::nullopt;
  ConfigDocument document = ConfigDocument::load(resolved);
  ConfigTable model = document.root().table("model");
  if (!model.has("image_mean") || !model.has("image_std")) return std::nullopt;
  return Normalise{.mean = model.get_double_list("image_mean"),
                   .std = model.get_double_list("image_std")};
}

}  // namespace

Recipe read_run_recipe(const fs::path& path, std::vector<std::string> overrides,
                       const fs::path& run) {
  Recipe recipe = read_recipe(path, overrides);
  const ModelRecipe& model = recipe.model;
  if (!model.from_normalise) return recipe;
  const std::optional<Normalise> trained = trained_with(run);
  if (!trained || (trained->mean == model.normalise.mean && trained->std == model.normalise.std))
    return recipe;
  ConfigDocument document = ConfigDocument::load(path);
  for (const std::string& assignment : overrides) document.apply_override(assignment);
  const ConfigTable stated = document.root().table("model");
  // The numbers of before were CLIP's.
  if (!stated.has("image_mean"))
    overrides.push_back("model.image_mean=" + toml_text(trained->mean));
  if (!stated.has("image_std")) overrides.push_back("model.image_std=" + toml_text(trained->std));
  return read_recipe(path, overrides);
}

std::string normalisation_warning(const ModelRecipe& model) {
  if (!model.from_normalise || same(model.normalise, *model.from_normalise)) return "";
  return fmt::format(
      "model.image_mean and image_std are {} and {}, but {} was trained with {} and {}; a new run "
      "that leaves the keys out takes these",
      toml_text(model.normalise.mean), toml_text(model.normalise.std), model.from.string(),
      toml_text(model.from_normalise->mean), toml_text(model.from_normalise->std));
}

}  // namespace mm::run
