#pragma once
// A LLaVA trained for two steps on toy captions, and packed sets to ask it about.
#include <memory>
#include <string>

#include "lib/base/file.h"
#include "lib/run/trained_model.h"
#include "tests/data/toy_source.h"
#include "tests/run/tiny_run.h"
#include "tests/run/two_step_recipe.h"

namespace mm::run::test {

inline std::shared_ptr<const data::Dataset> packed(const data::test::TempDir& dir,
                                                   const std::string& name,
                                                   const data::PackOptions& options) {
  data::pack_dataset(options, {.output = dir / name});
  return data::Dataset::open(dir / name);
}

/// `rows` captions of pictures of `side` pixels.
inline std::shared_ptr<const data::Dataset> packed(const data::test::TempDir& dir,
                                                   const std::string& name, uint32_t rows,
                                                   int32_t side = 8) {
  data::test::write_jsonl(dir / (name + ".jsonl"), data::test::good_rows(rows));
  data::PackOptions options = data::test::toy_options(dir / (name + ".jsonl"));
  options.pictures.side = side;
  return packed(dir, name, options);
}

/// A run of two steps on dir/data, pictures of 8 pixels.
inline TrainedModel trained_on_data(const data::test::TempDir& dir) {
  write_file_atomic(dir / "recipe.toml",
                    std::string("[run]\nseed = 5\nlog_every = 1000\n") + kTwoStepRecipe);
  run_threads(read_recipe(dir / "recipe.toml", {}), dir / "run", 1);
  return open_trained(dir / "run");
}

inline TrainedModel trained_in(const data::test::TempDir& dir) {
  packed(dir, "data", 12);
  return trained_on_data(dir);
}

/// JSONL of conversations over field pictures: turns alternate, the user's first.
inline void write_conversations(
    const std::filesystem::path& path,
    const std::vector<std::pair<std::string, std::vector<std::string>>>& rows) {
  std::string text;
  for (const auto& [image, turns] : rows) {
    Json conversation = Json::array();
    for (size_t i = 0; i < turns.size(); ++i)
      conversation.push_back({{"from", i % 2 == 0 ? "human" : "gpt"}, {"value", turns[i]}});
    text += Json{{"image", image}, {"conversations", conversation}}.dump() + "\n";
  }
  write_file_atomic(path, text);
}

}  // namespace mm::run::test
