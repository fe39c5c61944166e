#include "lib/run/recipe_paths.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace mm::run {

std::vector<RecipePath> recipe_paths(const Recipe& recipe) {
  std::vector<RecipePath> out;
  const auto add = [&](const std::string& key, const std::filesystem::path& path) {
    std::error_code error;
    if (!path.empty()) out.push_back({key, path, std::filesystem::exists(path, error)});
  };
  add("model.from", recipe.model.from);
  add("model.vae", recipe.model.vae);
  for (size_t i = 0; i < recipe.model.text_models.size(); ++i)
    add(i == 0 ? "model.text_model" : fmt::format("model.text_model_{}", i + 1),
        recipe.model.text_models[i]);
  add("lora.from", recipe.lora.from);
  add("init.from", recipe.init_from);
  for (size_t i = 0; i < recipe.stages.size(); ++i) {
    add(fmt::format("stage.{}.data", i), recipe.stages[i].data);
    add(fmt::format("stage.{}.encoded", i), recipe.stages[i].encoded);
  }
  return out;
}

std::string describe_without_data(const Recipe& recipe) {
  std::string out =
      fmt::format("{}: every key is good; {} steps; neither model nor data were opened\n",
                  recipe.path.string(), recipe.total_steps());
  for (const StageRecipe& s : recipe.stages) {
    const bool pixels = recipe.model.bucketed();
    out += fmt::format("  {:<12} {:>6} steps of {} packs of {} {}, trains {}\n", s.name, s.steps,
                       s.packs_per_step, pixels ? s.batch_pixels : s.sequence_length,
                       pixels ? "pixels" : "tokens", fmt::join(s.train, ", "));
  }
  for (const RecipePath& path : recipe_paths(recipe)) {
    out += fmt::format("  {:<14} {}: {}\n", path.key, path.present ? "there" : "not there",
                       path.path.string());
  }
  return out;
}

Json describe_without_data_json(const Recipe& recipe) {
  Json json{{"schema", 1},
            {"recipe", recipe.path.string()},
            {"steps", recipe.total_steps()},
            {"stages", Json::array()},
            {"paths", Json::array()}};
  for (const StageRecipe& s : recipe.stages) {
    json["stages"].push_back({{"name", s.name},
                              {"steps", s.steps},
                              {"packs_per_step", s.packs_per_step},
                              {"sequence_length", s.sequence_length},
                              {"train", s.train}});
  }
  for (const RecipePath& path : recipe_paths(recipe)) {
    json["paths"].push_back(
        {{"key", path.key}, {"path", path.path.string()}, {"present", path.present}});
  }
  return json;
}

}  // namespace mm::run
