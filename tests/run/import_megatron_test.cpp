#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "tests/run/import_check.h"

using namespace mm::run;
using namespace mm::run::test;

namespace {

ImportedRecipe megatron(const std::string& more) {
  return import_script(
      "--global-batch-size 16 --lr 1e-3 --train-iters 100 --seq-length 64 --data-path d " + more,
      "x.args", {});
}

StageRecipe stage(const std::string& more) { return read_back(megatron(more)).stages[0]; }

}  // namespace

TEST_CASE("import_recipe: Megatron's optimizer, batch and loss, its defaults where ours differ") {
  const StageRecipe plain = stage("");
  CHECK(plain.packs_per_step == 16);
  CHECK(plain.steps == 100);
  CHECK(plain.weight_decay == 0.01);
  CHECK(plain.packing == "none");
  CHECK(plain.loss.reduction == "micro_mean");
  CHECK(plain.train == kParts);
  const StageRecipe full = stage(
      "--adam-beta2 0.95 --adam-eps 1e-6 --clip-grad 0.5 --weight-decay 0.1 --micro-batch-size 4");
  CHECK(full.beta2 == 0.95);
  CHECK(full.eps == 1e-6);
  CHECK(full.clip_norm == 0.5);
  CHECK(full.loss.micro_packs == 4);
  CHECK(stage("--calculate-per-token-loss --micro-batch-size 4").loss.reduction == "global_token");
}

TEST_CASE("import_recipe: Megatron's schedules") {
  const ScheduleRecipe cosine =
      stage("--lr-decay-style cosine --min-lr 1e-4 --lr-warmup-fraction .05").schedule;
  CHECK(cosine.kind == "cosine");
  CHECK(cosine.min_ratio == doctest::Approx(0.1));
  CHECK(cosine.warmup_steps == 5);
  CHECK(stage("--lr-warmup-iters 7").schedule.warmup_steps == 7);
  CHECK(stage("").schedule.kind == "wsd");  // linear
  CHECK(stage("--lr-warmup-iters 7").schedule.decay_steps == 93);
  CHECK(stage("--lr-decay-style WSD --lr-wsd-decay-iters 20 --lr-wsd-decay-style linear")
            .schedule.decay_steps == 20);
  CHECK_FALSE(reason(megatron("--lr-decay-iters 50"), "--lr-decay-iters").empty());
  CHECK_FALSE(reason(megatron("--lr-decay-style inverse-square-root"), "--lr-decay-style").empty());
  CHECK_FALSE(reason(megatron("--min-lr 1"), "--min-lr").empty());
  CHECK_FALSE(reason(megatron("--lr-warmup-init 1e-5"), "--lr-warmup-init").empty());
  for (const char* style : {"constant", "inverse-square-root", "WSD"}) {
    const ImportedRecipe constant =
        megatron(std::string("--min-lr 1e-4 --lr-decay-style ") + style);
    CHECK(read_back(constant).stages[0].schedule.kind == "constant");
    CHECK(reason(constant, "--min-lr") == "the rate of the recipe is constant");
  }
}

TEST_CASE("import_recipe: Megatron's frozen parts, lengths and packing") {
  CHECK(stage("--freeze-LM --freeze-ViT").train == std::vector<std::string>{"projector"});
  CHECK(stage("--freeze-ViT").train == std::vector<std::string>{"projector", "language"});
  CHECK(stage("--decoder-seq-length 1024").sequence_length == 1024);
  const StageRecipe packed = stage("--packing-buffer-size 100 --packing-seq-length 512");
  CHECK(packed.packing == "tight");
  CHECK(packed.sequence_length == 512);
  CHECK_THROWS_AS(megatron("--freeze-LM --freeze-ViT --freeze-projection"), mm::Error);
}

TEST_CASE("import_recipe: Megatron's tiles, precision and recompute") {
  const ImportedRecipe tiles = megatron(
      "--use-tiling --max-num-tiles 6 --use-thumbnail --pixel-shuffle --img-h 448 --img-w 448 "
      "--patch-dim 14 --tokenizer-prompt-format qwen2p5");
  for (const char* part : {"--geometry internvl", "--max-tiles 6", "--thumbnail true", "--merge 2",
                           "--image-side 448", "--patch 14", "--template chatml"})
    CHECK_MESSAGE(tiles.report.commands.at(0).find(part) != std::string::npos, part);
  CHECK_FALSE(reason(megatron("--img-h 448 --img-w 336"), "--img-w").empty());
  CHECK(read_back(megatron("--bf16")).compute == "bf16");
  const Recipe half =
      read_back(megatron("--fp16 --initial-loss-scale 1024 --loss-scale-window 50"));
  CHECK(half.compute == "fp16");
  CHECK(half.loss_scale == 1024);
  CHECK(half.loss_scale_growth_steps == 50);
  CHECK(read_back(megatron("--fp16 --initial-loss-scale 1000")).loss_scale == 512);
  CHECK(read_back(megatron("--fp16 --initial-loss-scale 1e-7")).loss_scale == 0x1p-23);
  CHECK_FALSE(reason(megatron("--fp16 --loss-scale 1000"), "--loss-scale").empty());
  CHECK(read_back(megatron("--recompute-granularity full")).recompute.mode == "block");
  CHECK(read_back(megatron("--recompute-activations")).recompute.mode == "selective");
}

TEST_CASE("import_recipe: Megatron's samples in place of steps; what is missing is said") {
  const ImportedRecipe samples = import_script(
      "--global-batch-size 16 --micro-batch-size 1 --lr 1e-3 --train-samples 160 --seq-length 64",
      "x", {});
  CHECK(read_back(samples).stages[0].steps == 10);
  const ImportedRecipe nothing = import_script("--micro-batch-size 1", "x", {});
  CHECK(nothing.report.missing.size() >= 4);
  CHECK(nothing.toml.find("# steps = ?") != std::string::npos);
  CHECK(import_script("--micro-batch-size 1 --train_iters 3", "x", {.dialect = "llava"})
            .toml.find("LLaVA") != std::string::npos);
}
