#include "lib/run/scratch_model.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/ckpt/convert.h"
#include "lib/model/hf_load.h"
#include "lib/run/engine.h"
#include "lib/run/memory_estimate.h"
#include "lib/run/model_family.h"
#include "lib/run/model_setup.h"
#include "lib/run/published_model.h"
#include "tests/base/temp_dir.h"
#include "tests/run/tiny_run.h"
#include "tests/run/varied_sets.h"

// Vision-language models begun by a recipe alone, without a Hugging Face directory.
using namespace mm;
using namespace mm::run;
using namespace mm::run::test;
using mm::data::test::TempDir;

namespace {

struct Case {
  std::string family;
  void (*pictures)(data::PictureOptions&);
  std::string vision, language;  ///< further keys of these tables
};

std::vector<Case> cases() {
  return {
      {"llava", [](data::PictureOptions&) {}, "kind = \"siglip\"\n", "kind = \"qwen3\"\n"},
      {"llava_next", anyres, "", "kind = \"mistral\"\n"},
      {"llava_onevision", onevision, "grids = \"1x2,2x1,2x2,3x1,1x3\"\nmax_grid_tiles = 1\n", ""},
      {"qwen2_5_vl", qwen, "merge = 2\nwindow = 16\n", ""}};
}

std::string recipe_text(const Case& c) {
  const std::string side = c.family == "qwen2_5_vl" ? "" : "image_side = 8\n";
  return R"(
[run]
seed = 5
log_every = 1000
[model]
family = ")" +
         c.family + R"("
init_std = 0.2
[model.vision]
hidden = 16
layers = 2
heads = 2
patch = 4
)" + side +
         c.vision + R"([model.language]
hidden = 24
layers = 2
heads = 3
kv_heads = 1
)" + c.language +
         R"([precision]
compute = "float64"
[[stage]]
name = "all"
data = "data"
steps = 3
sequence_length = 220
packs_per_step = 4
lr = { vision = 1e-3, projector = 1e-3, language = 1e-3 }
)";
}

Recipe recipe_of(const TempDir& dir, const Case& c, const std::vector<std::string>& set = {}) {
  write_file_atomic(dir / "recipe.toml", recipe_text(c));
  return read_recipe(dir / "recipe.toml", set);
}

std::string refusal(const TempDir& dir, const Case& c, const std::string& set) {
  return mm::test::message_of<UsageError>([&] { (void)recipe_of(dir, c, {set}); });
}

}  // namespace

TEST_CASE("every family begins from a recipe, learns, and its export begins the same model") {
  for (const Case& c : cases()) {
    CAPTURE(c.family);
    TempDir dir;
    pack_varied(dir, c.pictures);
    const Recipe recipe = recipe_of(dir, c);
    CHECK(verb_check({{"recipe", (dir / "recipe.toml").string()},
                      {"set", Json::array()},
                      {"reference", false},
                      {"resolved", false},
                      {"draw", false},
                      {"json", false},
                      {"ranks", 2}}) == 0);
    const Outcome one = run_threads(recipe, dir / "one", 1);
    CHECK(one.records.at(2).loss < one.records.at(0).loss);
    CHECK(weight_difference(one, run_threads(recipe, dir / "two", 2)) < 1e-9);
    ckpt::convert(ckpt::resolve_target(dir / "one"), dir / "hf", {});
    const model::LoadedLlava loaded = model::load_llava(dir / "hf");
    const auto set = data::Dataset::open(dir / "data");
    CHECK(model::to_json(loaded.config) ==
          model::to_json(configure_model(recipe, {set->manifest()})));
    CHECK(model::family_name(loaded.config.family) == c.family);
    for (size_t i = 0; i < loaded.values.size(); ++i)
      CHECK(loaded.values[i].to(at::kDouble).equal(one.weights.at(loaded.model.params[i].name)));
    // Asked, run and export say the same.
    const TrainedModel trained = open_trained(dir / "one"), exported = open_model(dir / "hf");
    const data::Sample sample = *set->read(1);
    CHECK(answer(trained, *trained.params, {&sample}, 4) ==
          answer(exported, *exported.params, {&sample}, 4));
    CHECK(exported.tokenizer->vocab_size() == trained.tokenizer->vocab_size());
    // A run from the export begins where this one ended.
    std::string text = recipe_text(c);
    const size_t sizes = text.find("init_std"), rest = text.find("[precision]");
    text = text.substr(0, sizes) + "from = \"hf\"\n" + text.substr(rest);
    write_file_atomic(dir / "from.toml", text);
    const Outcome begun = run_threads(read_recipe(dir / "from.toml", {"stage.0.lr.vision=0"}),
                                      dir / "begun", 1, {.stop_after = 1});
    const std::string tower = c.family == "qwen2_5_vl"
                                  ? "visual.patch_embed.proj.weight"
                                  : "vision_tower.vision_model.embeddings.patch_embedding.weight";
    CHECK(begun.weights.at(tower).equal(one.weights.at(tower)));
  }
}

TEST_CASE("what a family is made of: tower, decoder, defaults as published") {
  TempDir dir;
  pack_varied(dir, onevision);
  const auto config = [&](const Case& c) {
    const auto set = data::Dataset::open(dir / "data");
    return scratch_config(recipe_of(dir, c), set->manifest());
  };
  const std::vector<Case> all = cases();
  const model::LlavaConfig next = config(all[1]), onevision = config(all[2]), vl = config(all[3]);
  CHECK(next.vision.kind == model::VisionKind::kClip);
  CHECK_FALSE(next.keep_first_row);
  CHECK(next.vision_feature_layer == -2);
  CHECK(next.grid_points.size() == 5);
  CHECK(next.grid_points[0] == model::GridPoint{8, 16});
  CHECK(onevision.vision.kind == model::VisionKind::kSiglip);
  CHECK(onevision.keep_first_row);
  CHECK(onevision.vision_feature_layer == -1);
  CHECK(onevision.max_grid_tiles == 1);
  CHECK(onevision.text.qkv_bias);
  CHECK(onevision.video_token == -1);  // the toy tokenizer has no such mark
  CHECK(vl.vision.output == 24);
  CHECK(vl.vision.full_layers == std::vector<int64_t>{1});
  CHECK(vl.text.rope_sections == std::vector<int64_t>{1, 1, 2});
  CHECK(vl.image_token_index == next.image_token_index);
  CHECK(next.projector == model::ProjectorKind::kMlp2xGelu);
  const auto set = data::Dataset::open(dir / "data");
  CHECK(scratch_config(recipe_of(dir, all[1], {"model.projector='linear'"}), set->manifest())
            .projector == model::ProjectorKind::kLinear);
  const Recipe usual = recipe_of(dir, {"llava_onevision", nullptr, "", ""});
  CHECK(usual.model.vision.max_grid_tiles == 9);
  CHECK(usual.model.vision.grids.ends_with(",6x5,6x6"));
}

TEST_CASE("keys that do not fit the family or one another are one line that names the key") {
  TempDir dir;
  pack_varied(dir, anyres);
  const std::vector<Case> all = cases();
  const auto names = [&](const Case& c, const std::string& set, const std::string& part) {
    const std::string said = refusal(dir, c, set);
    CAPTURE(said);
    CHECK(said.find(part) != std::string::npos);
    CHECK(said.find('\n') == std::string::npos);
  };
  const Recipe half = recipe_of(dir, all[1], {"model.vision.grids='2x'"});
  const auto set = data::Dataset::open(dir / "data");
  CHECK_THROWS_WITH_AS((void)scratch_config(half, set->manifest()),
                       doctest::Contains("model.vision: grids: \"2x\" is no pair"), UsageError);
  names(all[1], "model.vision.merge=2", "model.vision.merge");
  names(all[0], "model.vision.grids='1x2'", "model.vision.grids");
  names(all[3], "model.vision.image_side=8", "model.vision.image_side");
  names(all[3], "model.projector='linear'", "model.projector");
  names(all[3], "model.vision.window=12", "12 is no multiple of patch x merge = 8");
  names(all[3], "model.vision.full_layers=[2]", "full_layers");
  names(all[3], "model.vision.hidden=12", "no multiple of 4");
  names(all[3], "model.language.rope_sections=[1,1,1]", "half of the head size, 4");
  names(all[2], "model.vision.max_grid_tiles=0", "max_grid_tiles");
}

TEST_CASE("a state of another kind of model is not resumed") {
  TempDir dir;
  pack_varied(dir, anyres);
  const Case next = cases()[1];
  run_threads(recipe_of(dir, next), dir / "run", 1, {.stop_after = 1});
  CHECK_THROWS_WITH_AS(
      run_threads(recipe_of(dir, next, {"model.language.kind='llama'"}), dir / "run", 1),
      doctest::Contains("model.kinds"), Error);
  CHECK_THROWS_WITH_AS(
      run_threads(recipe_of(dir, next, {"model.projector='linear'"}), dir / "run", 1),
      doctest::Contains("model.projector"), Error);
}

TEST_CASE("memory estimate: the tower of pictures of any size is counted, recomputed pieces not") {
  TempDir dir;
  pack_varied(dir, qwen);
  const Case vl = cases()[3];
  const auto activations = [&](const std::vector<std::string>& overrides) {
    const Recipe recipe = recipe_of(dir, vl, overrides);
    const auto set = data::Dataset::open(dir / "data");
    const auto family = make_family(recipe, {set->manifest()});
    const model::Model model = family->build();
    return stage_memory({recipe, 0, model, *family, *set}).estimate.activations;
  };
  const std::vector<std::string> frozen{"stage.0.train=['language']", "stage.0.lr={language=1}"};
  CHECK(activations({}) > 1.5 * activations(frozen));
  CHECK(activations({"recompute.mode='selective'", "recompute.pieces=['attention','mlp']"}) <
        activations({}));
}
