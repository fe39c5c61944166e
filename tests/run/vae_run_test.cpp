// An autoencoder trained by a recipe, and a diffusion model on its latents.
#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/ckpt/convert.h"
#include "lib/model/vae_load.h"
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
