#include "lib/run/held_out_loss.h"

#include <doctest/doctest.h>

#include <cmath>

#include "lib/base/error.h"
#include "lib/run/encode_dataset.h"
#include "lib/run/metrics.h"
#include "tests/run/stored_units.h"
#include "tests/run/tiny_diffusion.h"
#include "tests/run/tiny_encoders.h"

using namespace mm::run;
using namespace mm::run::test;
using mm::data::test::TempDir;

namespace {

/// The tiny run, measured on its own pictures every 4 steps.
Recipe measured(const TempDir& dir, std::vector<std::string> keys = {}) {
  tiny_diffusion_recipe(dir.path());
  keys.insert(keys.end(), {"validation.every_steps=4",
                           "validation.data=" + (dir / "pictures").string(), "comm.timeout_s=5"});
  return tiny_diffusion_recipe(dir.path(), keys);
}

std::vector<double> losses(const std::filesystem::path& run) {
  std::vector<double> all;
  for (const StepRecord& record : read_metrics(run)) {
    if (!std::isnan(record.validation_loss)) all.push_back(record.validation_loss);
  }
  return all;
}

}  // namespace

TEST_CASE("held-out loss on a schedule: training stays the same to the bit, the loss any ranks'") {
  TempDir dir;
  const Outcome plain = run_threads(tiny_diffusion_recipe(dir.path()), dir / "plain", 2);
  const Outcome two = run_threads(measured(dir), dir / "two", 2);
  CHECK(same_bits(plain, two));
  const std::vector<StepRecord> records = read_metrics(dir / "two");
  REQUIRE(records.size() == 8);
  CHECK(losses(dir / "two").size() == 2);
  CHECK(records[3].validation_by_time.size() == 8);
  CHECK(records[3].validation_by_time.contains("0.0625"));
  CHECK(records[7].validation_loss != records[3].validation_loss);
  CHECK(losses(dir / "plain").empty());
  for (const int ranks : {1, 3}) {
    const std::filesystem::path run = dir / std::to_string(ranks);
    // Weights that do not depend on the count of ranks.
    const std::vector<std::string> still{"stage.0.lr.text_encoder=0", "stage.0.lr.transformer=0"};
    run_threads(measured(dir, still), run, ranks);
  }
  CHECK(losses(dir / "1") == losses(dir / "3"));
  CHECK(losses(dir / "1").size() == 2);
}

TEST_CASE("held-out loss on a schedule: what eval gives of the checkpoint, in bf16 too") {
  for (const char* compute : {"fp32", "bf16"}) {
    CAPTURE(compute);
    TempDir dir;
    run_threads(measured(dir, {"precision.compute=" + std::string(compute),
                               "validation.pictures=10", "stage.0.batch_pixels=1000000"}),
                dir / "run", 1);
    const TrainedDiffusion trained = open_trained_diffusion(dir / "run");
    const auto set = mm::data::Dataset::open(dir / "pictures");
    const ValidationLoss loss = validation_loss(trained, *trained.params, *set, {.limit = 10});
    CHECK(losses(dir / "run").back() == loss.mean());
  }
}

TEST_CASE("held-out loss on a schedule: of latents on the way and stored, with one result") {
  TempDir dir;
  tiny_diffusion_recipe(dir.path());
  encode_dataset(
      {.dataset = dir / "pictures", .encoders = {.vae = tiny_vae()}, .output = dir / "latents"});
  const std::vector<std::string> keys{"model.vae=" + tiny_vae().string(),
                                      "model.transformer.patch=1", "stage.0.steps=4",
                                      "stage.0.encoded=" + (dir / "latents").string()};
  run_threads(measured(dir, keys), dir / "way", 2);
  std::vector<std::string> stored = keys;
  stored.push_back("validation.encoded=" + (dir / "latents").string());
  run_threads(measured(dir, stored), dir / "stored", 2);
  REQUIRE(losses(dir / "way").size() == 1);
  CHECK(losses(dir / "way")[0] == doctest::Approx(losses(dir / "stored")[0]).epsilon(1e-4));

  // Ranks compare all that was opened.
  const auto pictures = mm::data::Dataset::open(dir / "pictures");
  const std::vector<OpenedData> opened =
      make_family(measured(dir, stored), {pictures->manifest()})->opened();
  REQUIRE(opened.size() == 3);
  CHECK(opened[0].fingerprint == opened[2].fingerprint);
  CHECK(opened[1].fingerprint == pictures->fingerprint());
  CHECK(opened[2].path == (dir / "latents").string());
}

TEST_CASE("held-out loss on a schedule: latents that are scaled otherwise are refused") {
  TempDir dir;
  tiny_diffusion_recipe(dir.path());
  const std::filesystem::path set = dir / "latents";
  encode_dataset({.dataset = dir / "pictures", .encoders = {.vae = tiny_vae()}, .output = set});
  mm::Json manifest = mm::read_json_file(set / "manifest.json");
  manifest["settings"]["scaling_factor"] = 0.75;
  mm::write_file_atomic(set / "manifest.json", manifest.dump());
  rewrite_tensors(set / unit_name(0), [&](Tensors&, mm::ckpt::Metadata& metadata) {
    metadata[kSettingsKey] = settings_hash(encoded_settings_from(manifest["settings"], "set"));
  });
  restate_bytes(set);
  const Recipe recipe =
      measured(dir, {"model.vae=" + tiny_vae().string(), "model.transformer.patch=1",
                     "validation.encoded=" + set.string()});
  CHECK_THROWS_WITH_AS(run_threads(recipe, dir / "run", 1),
                       doctest::Contains("has scaling_factor 0.75"), mm::Error);
}

TEST_CASE("held-out loss on a schedule: no data, or data of another kind, is refused") {
  TempDir dir;
  CHECK_THROWS_WITH_AS(tiny_diffusion_recipe(dir.path(), {"validation.every_steps=4"}),
                       doctest::Contains("validation.every_steps needs held-out pictures"),
                       mm::UsageError);
  mm::data::PackOptions options = mm::data::test::toy_options(dir / "in.jsonl");
  mm::data::pack_dataset(options, {.output = dir / "squares", .threads = 1});
  const Recipe squares = tiny_diffusion_recipe(
      dir.path(), {"validation.every_steps=4", "validation.data=" + (dir / "squares").string()});
  CHECK_THROWS_WITH_AS(run_threads(squares, dir / "run", 1),
                       doctest::Contains("not a bucketed set"), mm::Error);
}
