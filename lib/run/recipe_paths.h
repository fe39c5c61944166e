#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/run/recipe.h"

namespace mm::run {

/// A directory that a recipe names.
struct RecipePath {
  std::string key;  ///< "stage.0.data"
  std::filesystem::path path;
  bool present = false;
};

/// All of them, in the order of the recipe; nothing is opened.
std::vector<RecipePath> recipe_paths(const Recipe& recipe);

/// What can be said of a recipe whose model and data are not there yet.
std::string describe_without_data(const Recipe& recipe);
Json describe_without_data_json(const Recipe& recipe);

}  // namespace mm::run
