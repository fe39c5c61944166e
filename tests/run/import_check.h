#pragma once
// What tests of import-recipe share.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "lib/run/import_recipe.h"
#include "lib/run/recipe.h"

namespace mm::run::test {

inline std::filesystem::path import_folder() {
  return std::filesystem::path(MM_TEST_DATA) / "run" / "import";
}

/// The recipe as the trainer reads it, before its paths are there.
inline Recipe read_back(const ImportedRecipe& imported) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() /
                                     ("mm_import_" + std::to_string(::getpid()) + ".toml");
  std::ofstream(path) << imported.toml;
  struct Remove {
    std::filesystem::path path;
    ~Remove() { std::filesystem::remove(path); }
  } const remove{path};
  return read_recipe(path, {}, RecipePaths::kMayBeAbsent);
}

/// Why a flag is not mapped; empty if it is.
inline std::string reason(const ImportedRecipe& imported, const std::string& flag) {
  const auto& all = imported.report.unmapped;
  const auto at =
      std::find_if(all.begin(), all.end(), [&](const auto& u) { return u.flag == flag; });
  return at == all.end() ? "" : at->reason;
}

}  // namespace mm::run::test
