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
  add("lora.from", recipe.lora.from);
  add("init.from", recipe.init_from);
  for (size_t i = 0; i < recipe.stages.size(); ++i)
    add(fmt::format("stage.{}.data", i), recipe.stages[i].data);
  return out;
}

std::string describe_without_data(const Recipe& recipe) {
  std::string out =
      fmt::format("{}: every key is good; {} steps; neither model nor data were opened\n",
                  recipe.path.string(), recipe.total_steps());
  for (const StageRecipe& s : recipe.stages) {
    out += fmt::format("  {:<12} {:>6} steps of {} packs of {} tokens, trains {}\n", s.name,
                       s.steps, s.packs_per_step, s.sequence_length, fmt::join(s.train, ", "));
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
