#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/ckpt/safetensors_writer.h"
#include "lib/data/dataset.h"
#include "lib/run/trained_model.h"
#include "tests/base/temp_dir.h"
#include "tests/model/tiny_varied.h"
#include "tests/run/tiny_run.h"
#include "tests/run/varied_sets.h"

// Training from a Hugging Face directory on pictures of several tiles and of any size.
using namespace mm;
using namespace mm::run;
using namespace mm::run::test;
using mm::data::test::TempDir;

namespace {

/// The toy tokenizer's ids: 18 words, <image> 6.
model::LlavaConfig toy_vocabulary(model::LlavaConfig config) {
  config.text.vocab = 20;
  config.image_token_index = 6;
  return config;
}

void write_directory(const std::filesystem::path& to, const model::LlavaConfig& config) {
  std::filesystem::create_directories(to);
  write_file_atomic(to / "config.json", model::to_json(config).dump());
  const model::Model model = model::build_llava(config);
  const model::SimpleParams params = model::test::lively_params(model, 7, at::kFloat);
  std::vector<at::Tensor> kept;
  std::vector<ckpt::TensorSource> sources;
  for (size_t i = 0; i < model.params.size(); ++i) {
    const at::Tensor value = params.get(static_cast<int>(i)).detach().contiguous();
    kept.push_back(value);
    sources.push_back(
        {.name = model.params[i].name,
         .dtype = ckpt::DType::kF32,
         .shape = {value.sizes().begin(), value.sizes().end()},
         .bytes = {static_cast<const std::byte*>(value.const_data_ptr()), value.nbytes()}});
  }
  ckpt::write_safetensors(to / "model.safetensors", sources);
}

Recipe recipe_of(const TempDir& dir) {
  write_file_atomic(dir / "recipe.toml", R"(
[run]
seed = 5
log_every = 1000
[model]
from = "hf"
[precision]
compute = "float64"
[[stage]]
name = "all"
data = "data"
steps = 3
sequence_length = 220
packs_per_step = 4
lr = { vision = 1e-3, projector = 1e-3, language = 1e-3 }
)");
  return read_recipe(dir / "recipe.toml", {});
}

struct Family {
  model::LlavaConfig config;
  void (*pictures)(data::PictureOptions&);
};

std::vector<Family> families() {
  return {{toy_vocabulary(model::test::tiny_next_config()), anyres},
          {toy_vocabulary(model::test::tiny_onevision_config()), onevision},
          {toy_vocabulary(model::test::tiny_qwen_config()), qwen}};
}

}  // namespace

TEST_CASE("law 1 with tiles and pictures of any size: 1 and 3 ranks give the same run") {
  for (const Family& family : families()) {
    CAPTURE(model::family_name(family.config.family));
    TempDir dir;
    pack_varied(dir, family.pictures);
    write_directory(dir / "hf", family.config);
    const Recipe recipe = recipe_of(dir);
    const Outcome one = run_threads(recipe, dir / "one", 1),
                  three = run_threads(recipe, dir / "three", 3);
    REQUIRE(one.records.size() == 3);
    CHECK(one.records[2].loss < one.records[0].loss);
    CHECK(one.records[0].mfu > 0);
    CHECK(weight_difference(one, three) < 1e-9);
    for (size_t i = 0; i < 3; ++i)
      CHECK(three.records[i].loss == doctest::Approx(one.records[i].loss).epsilon(1e-10));
  }
}

TEST_CASE("law 2 with tiles and pictures of any size: stopped and resumed is bit-equal") {
  for (const Family& family : families()) {
    CAPTURE(model::family_name(family.config.family));
    TempDir dir;
    pack_varied(dir, family.pictures);
    write_directory(dir / "hf", family.config);
    const Recipe recipe = recipe_of(dir);
    const Outcome whole = run_threads(recipe, dir / "whole", 1);
    run_threads(recipe, dir / "stopped", 1, {.stop_after = 2});
    CHECK(same_bits(whole, run_threads(recipe, dir / "stopped", 1)));
  }
}

TEST_CASE("a trained run answers about its pictures: batched and one by one alike") {
  for (const Family& family : families()) {
    CAPTURE(model::family_name(family.config.family));
    TempDir dir;
    pack_varied(dir, family.pictures);
    write_directory(dir / "hf", family.config);
    run_threads(recipe_of(dir), dir / "run", 1);
    const TrainedModel trained = open_trained(dir / "run");
    const auto set = data::Dataset::open(dir / "data");
    std::vector<data::Sample> samples;
    for (uint64_t row = 0; row < 3; ++row) samples.push_back(*set->read(row));
    std::vector<const data::Sample*> together;
    std::vector<std::string> apart;
    for (const data::Sample& sample : samples) {
      together.push_back(&sample);
      apart.push_back(answer(trained, *trained.params, {&sample}, 4).front());
      // The prompt that a picture of its own gets is the one that it was trained with.
      const data::Sample prompt = picture_prompt(trained, sample.pixels, sample.grids.front());
      const model::Batch stored = prompt_batch(trained, {&sample}),
                         fresh = prompt_batch(trained, {&prompt});
      CHECK(at::equal(stored.tokens, fresh.tokens));
      CHECK(at::equal(stored.pixel_values, fresh.pixel_values));
    }
    CHECK(answer(trained, *trained.params, together, 4) == apart);
    CHECK(std::ranges::any_of(apart, [](const std::string& text) { return !text.empty(); }));
  }
}

TEST_CASE("C13: pictures packed for another model are refused in one line that says how to pack") {
  const auto refusal = [](const model::LlavaConfig& config,
                          void (*pictures)(data::PictureOptions&)) {
    TempDir dir;
    pack_varied(dir, pictures);
    write_directory(dir / "hf", config);
    const Recipe recipe = recipe_of(dir);
    return mm::test::message_of<Error>([&] { run_threads(recipe, dir / "run", 1); });
  };
  const auto all = families();
  const auto contains = [](const std::string& text, const std::string& part) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
    CHECK(text.find('\n') == std::string::npos);
  };
  contains(refusal(all[0].config, [](data::PictureOptions&) {}),
           "was packed with --geometry crop --side 8 --patch 4; a model of family llava_next reads "
           "--geometry anyres --side 8 --patch 4 --grids 1x2,2x1,2x2,3x1,1x3");
  contains(refusal(all[0].config, qwen), "--geometry qwen --patch 4 --merge 2; a model");
  contains(refusal(all[1].config, anyres), "--max-grid-tiles 1");
  contains(refusal(all[2].config, anyres),
           "a model of family qwen2_5_vl reads --geometry qwen --patch 4 --merge 2");
  contains(refusal(all[0].config,
                   [](data::PictureOptions& p) { p.geometry = "anyres", p.grids = "1x2,2x1"; }),
           "--grids 1x2,2x1; a model");
  contains(refusal(toy_vocabulary(model::test::tiny_config()), anyres), "geometry anyres");
}

TEST_CASE("model.family names the family of model.from, or is left out") {
  TempDir dir;
  pack_varied(dir, anyres);
  write_directory(dir / "hf", families()[0].config);
  (void)recipe_of(dir);
  const auto with = [&](const std::string& family) {
    const Recipe recipe = read_recipe(dir / "recipe.toml", {"model.family=\"" + family + "\""});
    return run_threads(recipe, dir / family, 1, {.stop_after = 1}).code;
  };
  CHECK(with("llava_next") == ExitCode::kSavedRunAgain);
  const std::string refusal = mm::test::message_of<Error>([&] { with("qwen2_5_vl"); });
  CHECK(refusal.find("model.family is qwen2_5_vl") != std::string::npos);
}
