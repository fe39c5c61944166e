#include "lib/run/recipe_paths.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>

#include "lib/base/error.h"

namespace fs = std::filesystem;
using namespace mm::run;

namespace {

struct Folder {
  fs::path path = fs::temp_directory_path() / ("mm_recipe_paths_" + std::to_string(::getpid()));
  Folder() {
    fs::create_directories(path / "there");
    std::ofstream(path / "r.toml") << R"(
[model]
from = "not-there"
[[stage]]
name = "one"
data = "there"
train = ["projector"]
steps = 3
sequence_length = 64
packs_per_step = 4
lr = { projector = 1e-3 }
)";
  }
  ~Folder() { fs::remove_all(path); }
};

}  // namespace

TEST_CASE("read_recipe: a directory that must be there may be absent only if the caller says so") {
  Folder folder;
  CHECK_THROWS_AS(read_recipe(folder.path / "r.toml", {}), mm::Error);
  const Recipe recipe = read_recipe(folder.path / "r.toml", {}, RecipePaths::kMayBeAbsent);
  CHECK(recipe.model.from == folder.path / "not-there");
}

TEST_CASE("recipe_paths: each directory with its key, and whether it is there") {
  Folder folder;
  const Recipe recipe =
      read_recipe(folder.path / "r.toml", {"init.from=/no/such/run"}, RecipePaths::kMayBeAbsent);
  const std::vector<RecipePath> paths = recipe_paths(recipe);
  REQUIRE(paths.size() == 3);
  CHECK(paths[0].key == "model.from");
  CHECK_FALSE(paths[0].present);
  CHECK(paths[1].key == "init.from");
  CHECK(paths[1].path == "/no/such/run");
  CHECK(paths[2].key == "stage.0.data");
  CHECK(paths[2].present);
  const std::string text = describe_without_data(recipe);
  CHECK(text.find("3 steps of 4 packs of 64 tokens, trains projector") != std::string::npos);
  CHECK(text.find("not there: /no/such/run") != std::string::npos);
  const mm::Json json = describe_without_data_json(recipe);
  CHECK(json.at("paths").size() == 3);
  CHECK(json.at("stages").at(0).at("steps") == 3);
}
