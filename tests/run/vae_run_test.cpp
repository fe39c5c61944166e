// An autoencoder trained by a recipe, and a diffusion model on its latents.
#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/ckpt/convert.h"
#include "lib/model/vae_load.h"
#include "lib/run/reconstruction.h"
#include "tests/run/tiny_diffusion.h"

using namespace mm::run;
using namespace mm::run::test;
using mm::data::test::TempDir;
namespace fs = std::filesystem;

namespace {

/// Two resolutions, on the pictures of tiny_diffusion_recipe.
Recipe tiny_vae_recipe(const TempDir& dir, const std::vector<std::string>& set = {}) {
  tiny_diffusion_recipe(dir.path());
  mm::write_file_atomic(dir / "vae.toml", R"(
[run]
seed = 5
log_every = 1000
[model]
family = "vae"
[model.autoencoder]
channels = [8, 8]
latent_channels = 3
groups = 4
scaling_factor = 0.5
[ema]
decay = 0.9
warmup = "ratio"
[precision]
compute = "float64"
[[stage]]
name = "rebuild"
data = "pictures"
steps = 6
batch_pixels = 288
packs_per_step = 4
lr = { vae = 3e-3 }
)");
  return read_recipe(dir / "vae.toml", set);
}

}  // namespace

TEST_CASE("vae, law 1 and 2: any ranks, and resumed as if never stopped; the loss falls") {
  TempDir dir;
  const Recipe recipe = tiny_vae_recipe(dir, {"stage.0.steps=12"});
  const Outcome one = run_threads(recipe, dir / "one", 1);
  REQUIRE(one.records.size() == 12);
  CHECK(one.records.back().loss < 0.9 * one.records.front().loss);
  for (int ranks : {2, 3})
    CHECK(weight_difference(one, run_threads(recipe, dir / std::to_string(ranks), ranks)) < 1e-9);
  run_threads(recipe, dir / "stopped", 1, {.stop_after = 5});
  CHECK(same_bits(one, run_threads(recipe, dir / "stopped", 1)));
}

TEST_CASE("vae: its export is a diffusers directory that a diffusion recipe's model.vae takes") {
  TempDir dir;
  run_threads(tiny_vae_recipe(dir), dir / "run", 1);
  mm::ckpt::convert(mm::ckpt::resolve_target(dir / "run"), dir / "vae", {});
  const mm::model::LoadedVae loaded = mm::model::load_vae(dir / "vae");
  CHECK(loaded.config.factor() == 2);
  CHECK(loaded.config.latent_channels == 3);
  CHECK(loaded.config.scale == 0.5);
  const Outcome drawn = run_threads(
      tiny_diffusion_recipe(dir.path(),
                            {"model.vae=" + (dir / "vae").string(), "model.transformer.patch=2"}),
      dir / "drawn", 1);
  CHECK(drawn.weights.at("pos_embed.proj.weight").size(1) == 3);

  std::string text = mm::read_file(dir / "vae.toml");
  const size_t sizes = text.find("[model.autoencoder]");
  text.erase(sizes, text.find("[ema]") - sizes);
  mm::write_file_atomic(dir / "again.toml", text);
  const Outcome again = run_threads(
      read_recipe(dir / "again.toml",
                  {"model.from=" + (dir / "vae").string(), "stage.0.steps=1", "stage.0.lr.vae=0"}),
      dir / "again", 1);
  CHECK(again.weights.at("encoder.conv_in.weight")
            .to(at::kFloat)
            .equal(loaded.values[0].to(at::kFloat)));
}

TEST_CASE("compare_pictures: by hand; equal pictures; less alike is lower in all three") {
  const at::Tensor grey = at::full({3, 16, 16}, 0.5), lighter = at::full({3, 16, 16}, 0.6);
  const PictureError same = compare_pictures(grey, grey), off = compare_pictures(grey, lighter);
  CHECK(same.l1 == 0);
  CHECK(same.psnr == doctest::Approx(100));
  CHECK(same.ssim == doctest::Approx(1));
  CHECK(off.l1 == doctest::Approx(0.1));
  CHECK(off.psnr == doctest::Approx(20));
  // Without variance only the means are compared: (2 a b + c) / (a^2 + b^2 + c), c = 1e-4.
  CHECK(off.ssim == doctest::Approx((0.6 + 1e-4) / (0.25 + 0.36 + 1e-4)));
  at::manual_seed(3);
  const at::Tensor noise = at::rand({3, 7, 9}, at::kDouble);
  const PictureError near = compare_pictures(noise, (noise + 0.02).clamp(0, 1)),
                     far = compare_pictures(noise, 1 - noise);
  CHECK(near.ssim > 0.9);
  CHECK(far.ssim < 0);
  CHECK(far.psnr < near.psnr);
}

TEST_CASE("vae: evaluation rebuilds held-out pictures; training improves all three figures") {
  TempDir dir;
  run_threads(tiny_vae_recipe(dir, {"stage.0.steps=1", "stage.0.lr.vae=0"}), dir / "first", 1);
  run_threads(tiny_vae_recipe(dir, {"stage.0.steps=60", "stage.0.lr.vae=1e-2"}), dir / "run", 1);
  CHECK(is_vae_run(dir / "run"));
  const auto set = mm::data::Dataset::open(dir / "pictures");
  const auto figures = [&](const char* run, Weights weights) {
    return evaluate_reconstruction(open_trained_vae(dir / run, weights), *set)
        .tasks.at("reconstruction");
  };
  const mm::Json before = figures("first", Weights::kRaw), raw = figures("run", Weights::kRaw);
  CHECK(before.at("samples") == 21);
  CHECK(!raw.at("averaged").get<bool>());
  CHECK(raw.at("psnr").get<double>() > before.at("psnr").get<double>() + 1);
  CHECK(raw.at("l1").get<double>() < before.at("l1").get<double>());
  CHECK(raw.at("ssim").get<double>() > before.at("ssim").get<double>());
  CHECK(figures("run", Weights::kAveraged).at("averaged").get<bool>());

  const TrainedVae trained = open_trained_vae(dir / "run");
  const EvalResult some = evaluate_reconstruction(trained, *set, {.limit = 5, .shown = 3});
  CHECK(some.tasks.at("reconstruction").at("samples") == 5);
  REQUIRE(some.rebuilt.size() == 3);
  CHECK(some.rebuilt[0].key == std::string(set->key(0)));
  CHECK(some.rebuilt[0].real_uri.starts_with("data:image/png;base64,"));
  CHECK(some.rebuilt[0].real_uri != some.rebuilt[0].data_uri);
  CHECK(task_lines(some.tasks).find("psnr") != std::string::npos);

  mm::data::PackOptions options = mm::data::test::toy_options(dir / "in.jsonl");
  mm::data::pack_dataset(options, {.output = dir / "squares", .threads = 1});
  const auto squares = mm::data::Dataset::open(dir / "squares");
  CHECK_THROWS_WITH_AS(evaluate_reconstruction(trained, *squares),
                       doctest::Contains("not a bucketed set"), mm::UsageError);
  run_threads(tiny_diffusion_recipe(dir.path(), {"stage.0.steps=1"}), dir / "dit", 1);
  CHECK(!is_vae_run(dir / "dit"));
  CHECK_THROWS_WITH_AS(open_trained_vae(dir / "dit"),
                       doctest::Contains("family pixart, expected vae"), mm::UsageError);
}

TEST_CASE("vae: sets without buckets or of odd sides, and keys of other families, are refused") {
  TempDir dir;
  const auto refused = [&](const std::vector<std::string>& set, const char* why) {
    CHECK_THROWS_WITH_AS(run_threads(tiny_vae_recipe(dir, set), dir / "run", 1),
                         doctest::Contains(why), mm::Error);
  };
  refused({"model.autoencoder.channels=[8, 8, 8, 8, 8]"},
          "sides must be multiples of the autoencoder's factor, 16");
  refused({"model.autoencoder.groups=3"}, "3 groups do not divide a width of 8");
  refused({"stage.0.train=[\"transformer\"]"}, "expected vae");
  refused({"diffusion.predict=flow"}, "unknown key");
  refused({"stage.0.encoded=pictures"}, "unknown key");
  mm::data::PackOptions options = mm::data::test::toy_options(dir / "in.jsonl");
  mm::data::pack_dataset(options, {.output = dir / "squares", .threads = 1});
  refused({"stage.0.data=" + (dir / "squares").string()}, "not a bucketed set");
}
