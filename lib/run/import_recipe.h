#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/run/import_report.h"

namespace mm::run {

/// What `mmtrain import-recipe` is told beside the script.
struct ImportOptions {
  /// A script (or file of flags) and what it takes as $1, $2, ...; or flags themselves.
  std::vector<std::string> arguments;
  std::filesystem::path deepspeed;               ///< in place of the one that the script names
  std::map<std::string, std::string> variables;  ///< of the script, that it does not set itself
  std::string dialect = "auto";                  ///< "llava", "megatron"
  int command = 0;      ///< which training command of the script, from 1; 0: it has one
  int64_t world = 0;    ///< processes of the run; 0: as the launcher in the script says
  int64_t samples = 0;  ///< of an epoch; 0: known for the published sets, else missing
  std::string recipe = "recipe.toml";  ///< its file name, for the commands in its header
};

struct ImportedRecipe {
  std::string toml;  ///< with the report as comments at its head
  ImportReport report;
};

/// Turns the arguments of a LLaVA run (LLaVA's or LLaVA-NeXT's train.py with the Hugging Face
/// trainer and a DeepSpeed file) or of a Megatron-LM multimodal run into a recipe of one stage.
/// Every argument ends in the report. Defaults of those programs count as given where ours differ.
/// Throws UsageError for options that are wrong, DataError for a script or value that is.
ImportedRecipe import_recipe(const ImportOptions& options);

/// The same for a script's text; `origin` stands in messages, its directory is where a DeepSpeed
/// file is looked for.
ImportedRecipe import_script(std::string_view text, const std::filesystem::path& origin,
                             const ImportOptions& options);

}  // namespace mm::run
