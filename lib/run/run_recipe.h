#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "lib/run/recipe.h"

namespace mm::run {

/// read_recipe for a run in `run`, which may go on. A run with a checkpoint keeps the normalisation
/// of pictures that it was trained with (RUN/recipe.toml) where the recipe states none: runs of
/// before model.from gave the default were trained with CLIP's. Throws as read_recipe does.
Recipe read_run_recipe(const std::filesystem::path& path, std::vector<std::string> overrides,
                       const std::filesystem::path& run);

/// One line where a run normalises pictures otherwise than those that model.from was trained on;
/// else empty.
std::string normalisation_warning(const ModelRecipe& model);

}  // namespace mm::run
