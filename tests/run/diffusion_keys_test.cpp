#include <doctest/doctest.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/run/diffusion_batch.h"
#include "lib/run/diffusion_setup.h"
#include "lib/run/model_family.h"
#include "lib/run/trained_diffusion.h"
#include "tests/run/tiny_diffusion.h"

using namespace mm::run;
using namespace mm::run::test;
using mm::data::BucketShape;
using mm::data::test::TempDir;

namespace {

BucketShape usual_of(std::vector<BucketShape> buckets) {
  TrainedDiffusion trained;
  trained.data.pictures.buckets = std::move(buckets);
  return trained.usual_size();
}

/// What is said of a recipe on the tiny pictures.
std::vector<std::string> remarks_of(const TempDir& dir, const std::vector<std::string>& keys) {
  const Recipe recipe = tiny_diffusion_recipe(dir.path(), keys);
  const auto set = mm::data::Dataset::open(dir / "pictures");
  return make_family(recipe, {set->manifest()})->remarks({set.get()});
}

}  // namespace

TEST_CASE("the usual size is the bucket nearest to a square, of equals the largest") {
  // As the presets of PixArt and SDXL begin.
  CHECK(usual_of({{128, 512}, {128, 496}, {256, 256}, {512, 128}}) == BucketShape{256, 256});
  CHECK(usual_of({{1024, 1024}, {896, 1152}}) == BucketShape{1024, 1024});
  CHECK(usual_of({{64, 64}, {128, 128}, {96, 96}}) == BucketShape{128, 128});
  CHECK(usual_of({{64, 96}, {160, 128}, {128, 160}}) == BucketShape{160, 128});
  CHECK(usual_of({{64, 96}}) == BucketShape{64, 96});
}

TEST_CASE("keys of times and variants: what they say reaches the objective and the model") {
  TempDir dir;
  const Recipe recipe = tiny_diffusion_recipe(
      dir.path(),
      {"diffusion.shift_patches=4", "diffusion.time_mean=-0.5", "diffusion.time_deviation=0.7",
       "diffusion.time_table=true", "model.transformer.position_scale=2",
       "model.transformer.size_embedders=true", "model.transformer.hidden=24"});
  const mm::model::Objective objective = objective_of(recipe.diffusion);
  CHECK(objective.shift_patches == 4);
  CHECK(objective.density_mean == -0.5);
  CHECK(objective.density_deviation == 0.7);
  CHECK(objective.from_table);
  const auto set = mm::data::read_manifest(dir / "pictures");
  const mm::model::DiffusionConfig config = configure_diffusion(recipe, {set});
  CHECK(config.position_scale == 2);
  CHECK(config.size_embedders);
  CHECK(run_threads(recipe, dir / "run", 1)
            .weights.contains("adaln_single.emb.resolution_embedder.linear_1.weight"));
  const Recipe mode = tiny_diffusion_recipe(
      dir.path(), {"diffusion.time_draw=mode", "diffusion.time_mode_scale=0.5"});
  CHECK(objective_of(mode.diffusion).mode_scale == 0.5);
}

TEST_CASE(
    "keys of times and variants: absent from the contract by default, refused without effect") {
  TempDir dir;
  const mm::Json usual = resume_contract(tiny_diffusion_recipe(dir.path()));
  CHECK(!usual.contains("diffusion.times"));
  CHECK(!usual.contains("model.transformer_variants"));
  const auto contract = [&](const char* key) {
    return resume_contract(tiny_diffusion_recipe(dir.path(), {key}));
  };
  CHECK(contract("diffusion.time_mean=1").contains("diffusion.times"));
  CHECK(contract("model.transformer.position_scale=2").contains("model.transformer_variants"));
  CHECK(contract("sample.size=8x8") == usual);
  const auto refused = [&](std::vector<std::string> keys, const char* why) {
    CHECK_THROWS_WITH_AS(tiny_diffusion_recipe(dir.path(), keys), doctest::Contains(why),
                         mm::UsageError);
  };
  refused({"diffusion.time_draw=uniform", "diffusion.time_mean=1"}, "only time_draw = ");
  refused({"diffusion.time_mode_scale=1"}, "only time_draw = \"mode\"");
  refused({"diffusion.predict=epsilon", "diffusion.shift_patches=4"}, "shift_patches");
  refused({"diffusion.predict=v", "diffusion.time_table=true"}, "time_table");
  refused({"model.transformer.size_embedders=true"}, "multiple of 12");
  refused({"model.transformer.dual_layers=[0]"}, "only sd3");
  refused({"sample.size=\"8\""}, "is no size");
  refused({"sample.size=8y8"}, "is no size");
}

TEST_CASE("a shift by the count of patches: larger pictures are trained and drawn with more") {
  mm::model::DiffusionConfig config;
  config.family = mm::model::DiffusionFamily::kDit;
  config.classes = 10;
  config.patch = 2;
  mm::model::Objective objective{.prediction = mm::model::Prediction::kVelocity, .shift = 3};
  const PixelNorm norm{.mean = {0.5F, 0.5F, 0.5F}, .std = {0.5F, 0.5F, 0.5F}};
  const auto sigma = [&](int32_t side) {
    mm::data::MicroBatch mb;
    mb.tokens = {3};
    mb.cu_seqlens = {0, 1};
    mb.images = 1;
    mb.height = mb.width = side;
    mb.pixels.assign(static_cast<size_t>(3) * side * side, 128);
    mb.sample_ids = {7};
    return to_diffusion_batch(mb, {.config = config, .objective = objective, .norm = norm})
        .diffusion->sigmas.item<double>();
  };
  const double of_all = sigma(8);
  CHECK(sigma(4) == of_all);
  objective.shift_patches = 4;  // 4 x 4 pixels
  CHECK(sigma(4) == of_all);
  // Twice the side, twice the shift.
  CHECK(sigma(8) == doctest::Approx(mm::model::shifted_sigma(of_all, 2)).epsilon(1e-6));
  CHECK(objective.shift_factor(16) == 2);
}

TEST_CASE("captions longer than the model reads, and guidance from nothing, are said in a line") {
  TempDir dir;
  const std::vector<std::string> none = remarks_of(dir, {"model.text_encoder.max_tokens=64"});
  CHECK(none.empty());
  const std::vector<std::string> cut = remarks_of(dir, {"model.text_encoder.max_tokens=2"});
  REQUIRE(cut.size() == 1);
  CHECK(cut[0].starts_with("stage draw: "));
  CHECK(cut[0].find("of 21 captions are longer than the 2 tokens the model reads") !=
        std::string::npos);
  CHECK(cut[0].find("model.text_encoder.max_tokens = ") != std::string::npos);
  const std::vector<std::string> base{"model.text_encoder.max_tokens=64", "sample.every_steps=5"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), base.begin(), base.end());
    return remarks_of(dir, more);
  };
  CHECK(with({}).empty());
  CHECK(with({"diffusion.label_drop=0", "sample.guidance=1"}).empty());
  const std::vector<std::string> guided = with({"diffusion.label_drop=0"});
  REQUIRE(guided.size() == 1);
  CHECK(guided[0].starts_with("[sample] guidance 4: no picture was trained without its label"));
}
