#include "lib/run/recipe.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "tests/base/temp_dir.h"

namespace fs = std::filesystem;
using namespace mm::run;

namespace {

constexpr const char* kGood = R"(
[run]
seed = 7
[model.language]
hidden = 32
heads = 4
[[stage]]
name = "warm"
data = "sets/names"
train = ["language"]
steps = 10
sequence_length = 64
packs_per_step = 2
lr = { language = 1e-3 }
[[stage]]
name = "all"
data = "sets/pictures"
steps = 5
sequence_length = 128
packs_per_step = 2
lr = { vision = 1e-4, projector = 1e-3, language = 1e-4 }
)";

struct RecipeFile {
  fs::path path =
      fs::temp_directory_path() / ("mm_recipe_test_" + std::to_string(::getpid()) + ".toml");
  explicit RecipeFile(const std::string& text) { std::ofstream(path) << text; }
  ~RecipeFile() { fs::remove(path); }
};

std::string message(const std::string& text, const std::vector<std::string>& overrides = {}) {
  RecipeFile file(text);
  try {
    read_recipe(file.path, overrides);
  } catch (const mm::Error& error) {
    CHECK(error.exit_code() == mm::ExitCode::kUsage);
    const std::string what = error.what();
    CHECK(what.find('\n') == std::string::npos);
    return what;
  }
  return "";
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("read_recipe: values, defaults and stage borders") {
  RecipeFile file(kGood);
  const Recipe recipe = read_recipe(file.path, {"stage.warm.steps=12"});
  CHECK(recipe.seed == 7);
  CHECK(recipe.total_steps() == 17);
  CHECK(recipe.locate(0) == std::pair<size_t, int64_t>{0, 0});
  CHECK(recipe.locate(11) == std::pair<size_t, int64_t>{0, 11});
  CHECK(recipe.locate(12) == std::pair<size_t, int64_t>{1, 0});
  CHECK(recipe.locate(17) == std::pair<size_t, int64_t>{1, 5});
  CHECK(recipe.stages[0].data == fs::temp_directory_path() / "sets/names");
  CHECK(recipe.stages[1].train == kParts);
  CHECK(recipe.model.language.mlp == 96);
}

TEST_CASE("read_recipe: what it resolved reads the same") {
  RecipeFile file(kGood);
  const Recipe first = read_recipe(file.path, {});
  RecipeFile again(first.resolved);
  const Recipe second = read_recipe(again.path, {});
  CHECK(second.resolved == first.resolved);
  CHECK(resume_contract(second) == resume_contract(first));
}

TEST_CASE("read_recipe: an unknown key names its place and the nearest key") {
  const std::string what = message(with(kGood, "packs_per_step = 2", "packs_per_stepp = 2"));
  CHECK(what.find(":13:1: ") != std::string::npos);
  CHECK(what.find("packs_per_step") != std::string::npos);
}

TEST_CASE("read_recipe: wrong type, range, word and missing keys say what was expected") {
  CHECK(message(with(kGood, "steps = 10", "steps = \"ten\"")).find("expected an integer") !=
        std::string::npos);
  CHECK(message(with(kGood, "steps = 10", "steps = 0")).find("stage.0.steps") != std::string::npos);
  CHECK(message(with(kGood, "name = \"warm\"\n", "")).find("name") != std::string::npos);
  CHECK(message(with(kGood, "\"language\"]", "\"langage\"]"))
            .find("expected vision, projector or language") != std::string::npos);
  CHECK(message(with(kGood, "lr = { language = 1e-3 }\n", "")).find("language") !=
        std::string::npos);
  CHECK(message(with(kGood, "heads = 4", "heads = 5")).find("5 heads do not divide hidden = 32") !=
        std::string::npos);
  CHECK(message(with(kGood, "\"all\"", "\"warm\"")).find("two stages are named") !=
        std::string::npos);
  CHECK(message("[run]\nseed = 1\n").find("no [[stage]]") != std::string::npos);
  CHECK(message(kGood, {"stage.0.lr.vision=1"}).find("vision") != std::string::npos);
  CHECK(message("[run\n").find(":1:") != std::string::npos);
}

TEST_CASE("read_recipe: every packing word is taken, another names them") {
  for (const char* word : {"tight", "greedy", "best_fit", "exact", "search", "shuffled", "none"}) {
    RecipeFile file(
        with(kGood, "packs_per_step = 2\nlr = { language",
             std::string("packs_per_step = 2\npacking = \"") + word + "\"\nlr = { language"));
    CHECK(read_recipe(file.path, {}).stages[0].packing == word);
  }
  CHECK(message(with(kGood, "packs_per_step = 2\nlr = { language",
                     "packs_per_step = 2\npacking = \"bestfit\"\nlr = { language"))
            .find("best_fit") != std::string::npos);
}

TEST_CASE("resume_contract: a change of batch shows, a change of logging does not") {
  RecipeFile file(kGood);
  const mm::Json base = resume_contract(read_recipe(file.path, {}));
  CHECK(resume_contract(read_recipe(file.path, {"run.log_every=3"})) == base);
  CHECK(resume_contract(read_recipe(file.path, {"stage.0.packs_per_step=4"})) != base);
}

namespace {

/// A start directory whose pictures have a mean and deviation of 0.5, and a recipe from it.
fs::path write_start(const mm::test::TempDir& dir, const std::string& keys = "") {
  fs::create_directories(dir / "start");
  mm::write_file_atomic(dir / "start/preprocessor_config.json",
                        R"({"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]})");
  mm::write_file_atomic(dir / "recipe.toml", R"([model]
from = "start"
)" + keys + R"([[stage]]
name = "all"
data = "d"
steps = 5
sequence_length = 128
packs_per_step = 2
lr = { vision = 1e-4, projector = 1e-3, language = 1e-4 }
)");
  return dir / "recipe.toml";
}

}  // namespace

TEST_CASE("read_recipe: pictures are normalised as model.from's were, unless the recipe says how") {
  const mm::test::TempDir dir;
  const std::vector<double> half(3, 0.5), clip = ModelRecipe::Normalise{}.std;
  const fs::path path = write_start(dir);
  const Recipe from = read_recipe(path, {});
  CHECK(from.model.normalise.mean == half);
  CHECK(from.model.normalise.std == half);
  CHECK_FALSE(from.model.normalise_stated);
  CHECK(resume_contract(from)["model.image_norm"] == mm::Json{half, half});
  // What a run records of itself states them.
  mm::write_file_atomic(dir / "resolved.toml", from.resolved);
  CHECK(resume_contract(read_recipe(dir / "resolved.toml", {})) == resume_contract(from));
  const Recipe stated = read_recipe(path, {"model.image_mean=[0, 0.25, 1]"});
  CHECK(stated.model.normalise.mean == std::vector<double>{0, 0.25, 1});
  CHECK(stated.model.normalise.std == half);
  CHECK(stated.model.normalise_stated);
  REQUIRE(stated.model.from_normalise.has_value());
  CHECK(stated.model.from_normalise->mean == half);
  fs::remove(dir / "start/preprocessor_config.json");
  CHECK(read_recipe(path, {}).model.normalise.std == clip);
}

TEST_CASE("read_recipe: what a start directory lacks is drawn as model.init and projector say") {
  const mm::test::TempDir dir;
  const fs::path path = write_start(dir, "init = \"fan_in\"\ninit_std = 0.5\n");
  const Recipe recipe = read_recipe(path, {});
  CHECK(recipe.model.init == "fan_in");
  CHECK(recipe.model.init_std == 0.5);
  CHECK(recipe.model.projector.empty());
  const mm::Json contract = resume_contract(recipe);
  CHECK(resume_contract(read_recipe(path, {"model.projector='mlp2x_gelu'"})) == contract);
  const Recipe linear = read_recipe(path, {"model.projector='linear'"});
  CHECK(linear.model.projector == "linear");
  CHECK(resume_contract(linear)["model.projector"] == "linear");
  RecipeFile scratch(kGood);
  CHECK(read_recipe(scratch.path, {}).model.projector == "mlp2x_gelu");
  CHECK(message(kGood, {"model.projector='mlp3x_gelu'"}).find("model.projector") !=
        std::string::npos);
}

TEST_CASE("contract_known_to: a run on stored text goes on without the models that it drew with") {
  const mm::Json saved{{"stage.0.steps", 3}, {"stage.0.encoded", true}, {"model.text_padding", 77}};
  mm::Json now = saved;
  now.erase("model.text_padding");
  CHECK(contract_known_to(saved, now) == saved);
  CHECK(contract_known_to(now, saved) == now);
  now.erase("stage.0.encoded");
  CHECK(contract_known_to(saved, now) == now);
}
