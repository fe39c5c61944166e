#include "lib/run/import_deepspeed.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "tests/run/import_check.h"

namespace fs = std::filesystem;
using namespace mm::run;
using namespace mm::run::test;

namespace {

struct Folder {
  fs::path path = fs::temp_directory_path() / ("mm_deepspeed_" + std::to_string(::getpid()));
  Folder() { fs::create_directories(path / "scripts"); }
  ~Folder() { fs::remove_all(path); }
};

ImportedRecipe with_file(const Folder& folder, const std::string& json, const std::string& flags) {
  std::ofstream(folder.path / "ds.json") << json;
  return import_script(
      "deepspeed --num_gpus 2 train.py --model_name_or_path m --max_steps 3 "
      "--deepspeed ds.json " +
          flags,
      folder.path / "scripts/x.sh", {});
}

}  // namespace

TEST_CASE("import_recipe: a DeepSpeed file is found above the script, each of its values told") {
  Folder folder;
  const ImportedRecipe imported =
      with_file(folder, R"({"bf16": {"enabled": true}, "gradient_clipping": 0.3, "odd": 1,
                  "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}})",
                "");
  const Recipe recipe = read_back(imported);
  CHECK(recipe.compute == "bf16");
  CHECK(recipe.stages[0].clip_norm == 0.3);
  CHECK(reason(imported, "ds.json: odd").find("not a flag") == 0);
  CHECK_FALSE(reason(imported, "ds.json: zero_optimization.stage").empty());
  CHECK_FALSE(reason(imported, "ds.json: zero_optimization.offload_optimizer.device").empty());
}

TEST_CASE("import_recipe: auto follows the arguments, numbers that differ are reported") {
  Folder folder;
  const ImportedRecipe imported = with_file(
      folder, R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4,
                  "gradient_accumulation_steps": "auto", "gradient_clipping": "auto"})",
      "--per_device_train_batch_size 4 --gradient_accumulation_steps 2 --max_grad_norm 0.7");
  const Recipe recipe = read_back(imported);
  CHECK(recipe.stages[0].packs_per_step == 16);
  CHECK(recipe.stages[0].clip_norm == 0.7);
  CHECK(reason(imported, "ds.json: train_batch_size").find("16 samples") != std::string::npos);
  CHECK(reason(imported, "ds.json: train_micro_batch_size_per_gpu") == "agrees with the run");
}

TEST_CASE("import_recipe: fp16 takes its scale from the DeepSpeed file") {
  Folder folder;
  const ImportedRecipe imported =
      with_file(folder, R"({"fp16": {"enabled": "auto", "loss_scale": 0, "initial_scale_power": 12,
                           "loss_scale_window": 500, "hysteresis": 2}})",
                "--fp16 True");
  const Recipe recipe = read_back(imported);
  CHECK(recipe.compute == "fp16");
  CHECK(recipe.loss_scale == 4096);
  CHECK(recipe.loss_scale_growth_steps == 500);
  CHECK_FALSE(reason(imported, "ds.json: fp16.hysteresis").empty());
  const ImportedRecipe between =
      with_file(folder, R"({"fp16": {"enabled": true, "initial_scale_power": 12.5}})", "");
  CHECK(read_back(between).loss_scale == 4096);
  CHECK(between.toml.find("rounded to a power of two") != std::string::npos);
}

TEST_CASE(
    "import_recipe: a DeepSpeed file that is nowhere is reported, one that is broken refused") {
  Folder folder;
  const ImportedRecipe absent = import_script(
      "deepspeed --num_gpus 2 train.py --model_name_or_path m --deepspeed nowhere/z.json",
      folder.path / "x.sh", {});
  CHECK(reason(absent, "--deepspeed").find("--deepspeed FILE") != std::string::npos);
  for (const char* broken :
       {"", "{", "[1, 2]", "{\"a\": 1, \"a\": 2}", "{\"bf16\": {\"enabled\": 7}}"})
    CHECK_THROWS_AS(with_file(folder, broken, ""), mm::Error);
  std::string wide = "{";
  for (int i = 0; i < 5000; ++i) wide += (i ? ",\"k" : "\"k") + std::to_string(i) + "\":1";
  CHECK_THROWS_AS(with_file(folder, wide + "}", ""), mm::Error);
}
