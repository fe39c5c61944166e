#include "lib/run/validation_loss.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "tests/run/tiny_diffusion.h"

using namespace mm::run;
using namespace mm::run::test;
using mm::data::test::TempDir;

namespace {

/// A tiny run of `steps` in DIR/run.
TrainedDiffusion train(const TempDir& dir, std::vector<std::string> set = {}) {
  set.emplace_back("precision.compute=fp32");
  run_threads(tiny_diffusion_recipe(dir.path(), set), dir / "run", 1);
  return open_trained_diffusion(dir / "run");
}

}  // namespace

TEST_CASE("validation loss: the same for any batch size, by every picture once, no run's seed") {
  TempDir dir;
  TrainedDiffusion trained = train(dir);
  const auto set = mm::data::Dataset::open(dir / "pictures");
  const ValidationLoss whole = validation_loss(trained, *trained.params, *set);
  CHECK(whole.samples == 21);
  CHECK(whole.averaged);
  REQUIRE(whole.at.size() == 8);
  CHECK(whole.at[0].time == doctest::Approx(1.0 / 16));
  CHECK(whole.at[7].time == doctest::Approx(15.0 / 16));
  trained.seed += 1;
  for (int64_t batch : {1, 3}) {
    const ValidationLoss parts = validation_loss(trained, *trained.params, *set, {.batch = batch});
    CHECK(parts.samples == 21);
    for (size_t i = 0; i < 8; ++i)
      CHECK(parts.at[i].loss == doctest::Approx(whole.at[i].loss).epsilon(1e-6));
  }
  const ValidationLoss first = validation_loss(trained, *trained.params, *set, {.limit = 1}),
                       two = validation_loss(trained, *trained.params, *set, {.limit = 2});
  CHECK(first.samples == 1);
  CHECK(two.samples == 2);
  CHECK(first.mean() != two.mean());
}

TEST_CASE("validation loss: training lowers it; text and JSON hold each time and the mean") {
  TempDir dir;
  const TrainedDiffusion trained =
      train(dir, {"stage.0.steps=60", "stage.0.lr.transformer=1e-2", "ema.decay=0.5"});
  const auto set = mm::data::Dataset::open(dir / "pictures");
  const ValidationLoss before = validation_loss(trained, trained.untrained(), *set),
                       after = validation_loss(trained, *trained.params, *set);
  CHECK(after.mean() < 0.9 * before.mean());
  const mm::Json json = after.to_json();
  CHECK(json.at("mean").get<double>() == after.mean());
  CHECK(json.at("by_sigma").size() == 8);
  CHECK(json.at("by_sigma").at("0.3125").get<double>() == after.at[2].loss);
  CHECK(!json.contains("variance_terms"));
  CHECK(after.table().find("0.3125 ") != std::string::npos);
  CHECK(after.table().find("over 21 pictures, averaged weights\n") != std::string::npos);
}

TEST_CASE(
    "validation loss: a loss summed over elements reads as the mean; steps of discrete times") {
  TempDir dir;
  TrainedDiffusion mean = train(dir, {"diffusion.predict=epsilon"});
  const auto set = mm::data::Dataset::open(dir / "pictures");
  const ValidationLoss by_picture = validation_loss(mean, *mean.params, *set);
  CHECK(by_picture.at[0].time == 62);
  CHECK(by_picture.at[7].time == 937);
  CHECK(by_picture.to_json().at("by_step").contains("937"));
  std::filesystem::remove_all(dir / "run");
  const TrainedDiffusion sum =
      train(dir, {"diffusion.predict=epsilon", "diffusion.normalisation=element"});
  const ValidationLoss untrained = validation_loss(sum, sum.untrained(), *set),
                       expected = validation_loss(mean, mean.untrained(), *set);
  CHECK(untrained.mean() == doctest::Approx(expected.mean()).epsilon(1e-5));
}

TEST_CASE("validation loss: sets that are not the run's kind are refused by name") {
  TempDir dir;
  const TrainedDiffusion trained = train(dir, {"stage.0.steps=1"});
  mm::data::PackOptions options = mm::data::test::toy_options(dir / "in.jsonl");
  mm::data::pack_dataset(options, {.output = dir / "squares", .threads = 1});
  const auto refuse = [&](const char* name, const char* why) {
    const auto set = mm::data::Dataset::open(dir / name);
    CHECK_THROWS_WITH_AS(validation_loss(trained, *trained.params, *set), doctest::Contains(why),
                         mm::UsageError);
  };
  refuse("squares", "not a bucketed set");
  options.pictures.geometry = "buckets";
  options.pictures.buckets = "6x6";
  mm::data::pack_dataset(options, {.output = dir / "odd", .threads = 1});
  refuse("odd", "pictures of 6x6 pixels, which patches of 4 do not divide");
}
