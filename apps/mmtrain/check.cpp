#include <fmt/format.h>

#include "apps/mmtrain/engine_loader.h"
#include "apps/mmtrain/verbs.h"
#include "lib/run/recipe_paths.h"

namespace mm::mmtrain {

namespace {
struct Options {
  std::string recipe;
  std::vector<std::string> set;
  int ranks = 1;
  bool json = false, resolved = false, reference = false, draw = false, without_data = false;
};

int check_without_data(const Options& options) {
  const run::Recipe recipe =
      run::read_recipe(options.recipe, options.set, run::RecipePaths::kMayBeAbsent);
  if (options.json) {
    fmt::print("{}\n", run::describe_without_data_json(recipe).dump(2));
  } else {
    fmt::print("{}", options.resolved ? recipe.resolved : run::describe_without_data(recipe));
  }
  return 0;
}
}  // namespace

void add_check(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "check",
      "Checks a recipe, its data sets and the step program of every stage, without training.");
  auto options = std::make_shared<Options>();
  verb->add_option("recipe", options->recipe, "TOML recipe")->required();
  verb->add_option("--set", options->set, "override a key (may be repeated)")
      ->allow_extra_args(false);
  verb->add_option("--ranks", options->ranks, "data ranks that the program is checked for")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  verb->add_flag("--resolved", options->resolved, "print the recipe with every default filled in");
  verb->add_flag("--reference", options->reference,
                 "print a Markdown table of all keys: type, default, meaning");
  verb->add_flag("--draw", options->draw, "draw the step program of each stage");
  verb->add_flag("--without-data", options->without_data,
                 "check the keys alone: model and data need not be there yet");
  verb->add_flag("--json", options->json, "one JSON object instead of text");
  verb->footer(
      "Examples:\n"
      "  mmtrain check recipes/quickstart-llava.toml\n"
      "  mmtrain check recipes/quickstart-llava.toml --ranks 4 --draw\n"
      "  mmtrain check recipes/llava-1.5-stage1.toml --without-data");
  verb->callback([options, &action] {
    action = [options] {
      if (options->without_data) return check_without_data(*options);
      return call_engine("check", {{"recipe", options->recipe},
                                   {"set", options->set},
                                   {"ranks", options->ranks},
                                   {"json", options->json},
                                   {"resolved", options->resolved},
                                   {"reference", options->reference},
                                   {"draw", options->draw}});
    };
  });
}

}  // namespace mm::mmtrain
