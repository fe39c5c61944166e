#include "lib/run/import_recipe.h"

#include <fmt/format.h>

#include "apps/mmtrain/verbs.h"
#include "lib/base/error.h"
#include "lib/base/file.h"

namespace mm::mmtrain {

namespace {
struct Options {
  run::ImportOptions import;
  std::vector<std::string> variables;
  std::string out, deepspeed;
  bool json = false;
};

int import(Options options) {
  for (const std::string& text : options.variables) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos)
      throw UsageError("--var {}: expected NAME=VALUE", text);
    options.import.variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  options.import.deepspeed = options.deepspeed;
  if (!options.out.empty()) options.import.recipe = options.out;
  const run::ImportedRecipe imported = run::import_recipe(options.import);
  if (!options.out.empty()) write_file_atomic(options.out, imported.toml);
  if (options.json) {
    Json json = imported.report.to_json();
    json["out"] = options.out;
    if (options.out.empty()) json["recipe"] = imported.toml;
    fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
    return 0;
  }
  for (const std::string& line : imported.report.lines()) fmt::print(stderr, "{}\n", line);
  if (options.out.empty()) {
    fmt::print("{}", imported.toml);
  } else {
    fmt::print("{}: {} arguments mapped, {} not; mmtrain check {}\n", options.out,
               imported.report.mapped.size(), imported.report.unmapped.size(), options.out);
  }
  return 0;
}

}  // namespace

void add_import_recipe(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "import-recipe",
      "Turns LLaVA's or Megatron-LM's arguments into a recipe and lists what it could not map.");
  auto options = std::make_shared<Options>();
  verb->add_option("arguments", options->import.arguments,
                   "shell script (or file of flags) and its own arguments; or, behind --, flags")
      ->required();
  verb->add_option("--out", options->out, "recipe to write (default: on stdout)");
  verb->add_option("--deepspeed", options->deepspeed,
                   "DeepSpeed file (default: the one that the script names)")
      ->check(CLI::ExistingFile);
  verb->add_option("--world", options->import.world,
                   "processes of the run (default: as the script starts)")
      ->check(CLI::Range(1, 1 << 20));
  verb->add_option("--samples", options->import.samples, "samples of an epoch")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  verb->add_option("--var", options->variables,
                   "NAME=VALUE that the script does not set (may be repeated)")
      ->allow_extra_args(false);
  verb->add_option("--command", options->import.command,
                   "which training command of the script, from 1")
      ->check(CLI::Range(1, 1000));
  verb->add_option("--from", options->import.dialect, "whose arguments they are")
      ->check(CLI::IsMember({"auto", "llava", "megatron"}))
      ->capture_default_str();
  verb->add_flag("--json", options->json, "one JSON object: what was mapped, what not and why");
  verb->footer(
      "Examples:\n"
      "  mmtrain import-recipe scripts/v1_5/finetune.sh --world 8 --out finetune.toml\n"
      "  mmtrain import-recipe finetune_lora.sh lmsys/vicuna-7b-v1.5 v1 --world 8 --json\n"
      "  mmtrain import-recipe sft.sh --var WORKSPACE=/store --out sft.toml");
  verb->callback([options, &action] { action = [options] { return import(*options); }; });
}

}  // namespace mm::mmtrain
