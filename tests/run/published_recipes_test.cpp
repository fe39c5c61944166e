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
    CHECK(lora.targets == std::map<std::string, std::vector<std::string>>{{"language", {"*"}}});
    CHECK(lora.from.empty());
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
