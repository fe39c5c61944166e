// The recipes in recipes/ say what was published.
#include <doctest/doctest.h>

#include <filesystem>

#include "lib/run/recipe.h"

namespace fs = std::filesystem;
using namespace mm::run;

namespace {

fs::path recipes_folder() { return fs::path(MM_TEST_DATA) / "../recipes"; }

Recipe read(const fs::path& path) { return read_recipe(path, {}, RecipePaths::kMayBeAbsent); }

/// What papers and scripts of LLaVA say of a run; AdamW 0.9 / 0.999, no decay, clipping at 1 and a
/// cosine after 3 % of warm-up (rounded up) hold for all.
struct Published {
  const char* file;
  int64_t samples, batch, a_device, length;
  bool drop_last;  ///< steps that are not full are left out
  std::map<std::string, double> rates;
};
const Published kPublished[] = {
    {"llava-1.5-stage1.toml", 558'128, 256, 32, 2048, false, {{"projector", 1e-3}}},
    {"llava-1.5-stage2.toml",
     665'298,
     128,
     16,
     2048,
     false,
     {{"projector", 2e-5}, {"language", 2e-5}}},
    {"llava-1.5-lora.toml",
     665'298,
     128,
     16,
     2048,
     false,
     {{"projector", 2e-5}, {"language", 2e-4}}},
    {"llava-next.toml",
     760'000,
     256,
     1,
     32768,
     true,
     {{"vision", 2e-6}, {"projector", 1e-5}, {"language", 1e-5}}},
};

}  // namespace

TEST_CASE("recipes/: published runs have their published numbers") {
  for (const Published& p : kPublished) {
    CAPTURE(p.file);
    const Recipe recipe = read(recipes_folder() / p.file);
    REQUIRE(recipe.stages.size() == 1);
    const StageRecipe& s = recipe.stages[0];
    const int64_t steps = p.samples / p.batch + (!p.drop_last && p.samples % p.batch != 0 ? 1 : 0);
    CHECK(s.steps == steps);
    CHECK(s.schedule.warmup_steps == (3 * steps + 99) / 100);
    CHECK(s.schedule.kind == "cosine");
    CHECK(s.schedule.min_ratio == 0);
    CHECK(s.packing == "none");
    CHECK(s.packs_per_step == p.batch);
    CHECK(s.sequence_length == p.length);
    CHECK(s.lr == p.rates);
    CHECK(s.train.size() == p.rates.size());
    CHECK(s.loss.reduction == "micro_mean");
    CHECK(s.loss.micro_packs == p.a_device);
    CHECK(s.weight_decay == 0);
    CHECK(s.beta1 == 0.9);
    CHECK(s.beta2 == 0.999);
    CHECK(s.eps == 1e-8);
    CHECK(s.clip_norm == 1);
    CHECK(recipe.compute == "bf16");
    CHECK(recipe.recompute.mode == "block");
    CHECK(!recipe.model.from.empty());
  }
}

TEST_CASE(
    "recipes/: adapters stand in the LoRA recipe alone, on the language model, as published") {
  for (const Published& p : kPublished) {
    CAPTURE(p.file);
    const LoraRecipe lora = read(recipes_folder() / p.file).lora;
    if (std::string_view(p.file) != "llava-1.5-lora.toml") {
      CHECK_FALSE(lora.on());
      continue;
    }
    CHECK(lora.rank == 128);
    CHECK(lora.alpha == 256);
    CHECK(lora.dropout == 0.05);
    CHECK(lora.targets == std::map<std::string, std::vector<std::string>>{{"language", {"*"}}});
    CHECK(lora.from.empty());
  }
}

namespace {

/// What papers and scripts of diffusion transformers say; see the recipes' heads.
struct PublishedDiffusion {
  const char* file;
  int64_t hidden, layers, heads, batch, steps, warmup;
  double rate, decay, eps, clip;
};
const PublishedDiffusion kDiffusion[] = {
    {"dit-xl-2.toml", 1152, 28, 16, 256, 7'000'000, 0, 1e-4, 0, 1e-8, 0},
    {"pixart-alpha.toml", 1152, 28, 16, 176 * 64, 150'000, 1000, 2e-5, 0.03, 1e-10, 0.01},
    {"sd3-medium.toml", 1536, 24, 24, 4096, 500'000, 1000, 1e-4, 0, 1e-8, 1},
};

}  // namespace

TEST_CASE("recipes/: published diffusion runs have their published numbers") {
  for (const PublishedDiffusion& p : kDiffusion) {
    CAPTURE(p.file);
    const Recipe recipe = read(recipes_folder() / p.file);
    REQUIRE(recipe.stages.size() == 1);
    const StageRecipe& s = recipe.stages[0];
    constexpr int64_t kPixels = 256 * 256;
    CHECK(s.batch_pixels % kPixels == 0);
    CHECK(s.batch_pixels / kPixels * s.packs_per_step == p.batch);
    CHECK(s.steps == p.steps);
    CHECK(s.schedule.kind == "constant");
    CHECK(s.schedule.warmup_steps == p.warmup);
    CHECK(s.lr == std::map<std::string, double>{{"transformer", p.rate}});
    CHECK(s.weight_decay == p.decay);
    CHECK(s.beta1 == 0.9);
    CHECK(s.beta2 == 0.999);
    CHECK(s.eps == p.eps);
    CHECK(s.clip_norm == p.clip);
    CHECK(recipe.model.transformer.hidden == p.hidden);
    CHECK(recipe.model.transformer.layers == p.layers);
    CHECK(recipe.model.transformer.heads == p.heads);
    CHECK(recipe.model.transformer.patch == 2);
    CHECK(recipe.model.transformer.time_divisor == 128);
    CHECK(recipe.ema.decay == 0.9999);
    const bool flow = std::string_view(p.file) == "sd3-medium.toml";
    CHECK(recipe.diffusion.label_drop == (flow ? 0 : 0.1));
    CHECK(recipe.diffusion.encoder_drop == (flow ? std::vector{0.464} : std::vector<double>{}));
    CHECK(recipe.comm_timeout_s == 60);
    CHECK(recipe.diffusion.predict == (flow ? "flow" : "epsilon"));
    CHECK(recipe.diffusion.learned_sigma == !flow);
    CHECK(recipe.model.text_models.size() == (flow ? 3 : recipe.model.family == "pixart" ? 1 : 0));
    CHECK(!recipe.model.vae.empty());
  }
}

TEST_CASE("recipes/: each file reads without complaint, and each stage trains something") {
  size_t recipes = 0;
  for (const auto& entry : fs::directory_iterator(recipes_folder())) {
    if (entry.path().extension() != ".toml") continue;
    CAPTURE(entry.path().string());
    for (const StageRecipe& stage : read(entry.path()).stages) CHECK(!stage.train.empty());
    ++recipes;
  }
  CHECK(recipes >= std::size(kPublished) + 1);
}
