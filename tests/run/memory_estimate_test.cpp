#include "lib/run/memory_estimate.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/data/dataset.h"
#include "lib/run/model_setup.h"
#include "tests/run/tiny_run.h"

using namespace mm;
using namespace mm::run;
using namespace mm::run::test;
using data::test::TempDir;

namespace {

StageMemory memory_of(const Recipe& recipe, size_t stage) {
  const auto set = data::Dataset::open(recipe.stages[stage].data);
  const std::vector<data::DatasetManifest> sets{set->manifest()};
  const auto family = make_family(recipe, sets);
  const model::Model model = family->build();
  return stage_memory({recipe, stage, model, *family, *set});
}

}  // namespace

TEST_CASE("memory estimate: states are bytes times elements, frozen parts have weights alone") {
  TempDir dir;
  const Recipe recipe = tiny_recipe(
      dir.path(),
      {"precision.compute=bf16", "stage.1.train=[\"projector\"]", "stage.1.lr={projector=1e-3}"});
  const MemoryEstimate first = memory_of(recipe, 0).estimate,
                       second = memory_of(recipe, 1).estimate;
  CHECK(first.weights == second.weights);
  CHECK(first.moments == 2 * first.gradients);
  CHECK(second.masters == second.gradients);  // the projector's alone: nothing else will train
  CHECK(first.masters > second.masters);
  CHECK(second.moments < first.moments);
  const Recipe lion = tiny_recipe(dir.path(), {"stage.0.optimizer=lion"});
  const MemoryEstimate one = memory_of(lion, 0).estimate;
  CHECK(one.moments == one.gradients);
  CHECK(one.masters == 0);  // float64: the compute copies are the masters
}

TEST_CASE("memory estimate: recompute and shorter packs lower the activations") {
  TempDir dir;
  const auto activations = [&](const std::vector<std::string>& set) {
    return memory_of(tiny_recipe(dir.path(), set), 1).estimate.activations;
  };
  const double kept = activations({}), mlp = activations({"recompute.mode=selective"}),
               block = activations({"recompute.mode=block"});
  CHECK(mlp < kept);
  CHECK(block < kept);
  CHECK(activations({"precision.compute=fp32"}) == doctest::Approx(kept / 2));
}

TEST_CASE("memory estimate: a shortage is one line with needs, what there is and what helps") {
  MemoryEstimate estimate{.weights = 3e9, .activations = 5e9};
  CHECK(memory_shortage(estimate, 9e9, "align").empty());
  const std::string line = memory_shortage(estimate, 4e9, "align");
  CHECK(line.find("stage align needs about 7.45 GiB") != std::string::npos);
  CHECK(line.find("3.73 GiB are available") != std::string::npos);
  CHECK(line.find("recompute.mode") != std::string::npos);
  CHECK(line.find('\n') == std::string::npos);
  CHECK(estimate.to_json().at("total") == 8e9);
  CHECK(memory_available(1).value_or(1) > 0);
}

TEST_CASE("a stage that cannot fit is refused before anything is allocated") {
  TempDir dir;
  // 2^20 wide MLPs: terabytes.
  const Recipe recipe =
      tiny_recipe(dir.path(), {"model.language.hidden=65536", "model.language.heads=4",
                               "model.language.kv_heads=4", "model.language.mlp=1048576",
                               "model.language.layers=64"});
  try {
    run_threads(recipe, dir / "run", 1);
    FAIL("not refused");
  } catch (const Error& error) {
    CHECK(error.exit_code() == ExitCode::kUsage);
    CHECK(std::string(error.what()).find("GiB are available") != std::string::npos);
  }
}

TEST_CASE("costliest first: the rehearsal leaves weights, moments and data as they were") {
  TempDir dir;
  const Outcome plain = run_threads(tiny_recipe(dir.path()), dir / "plain", 2);
  const Outcome first =
      run_threads(tiny_recipe(dir.path(), {"run.costliest_first=true"}), dir / "first", 2);
  CHECK(same_bits(plain, first));
  for (size_t i = 0; i < plain.records.size(); ++i)
    CHECK(first.records[i].loss == plain.records[i].loss);
}

TEST_CASE("lion trains, resumes to the bit, and is not exchanged for AdamW on resume") {
  TempDir dir;
  const std::vector<std::string> lion = {"stage.0.optimizer=lion", "stage.1.optimizer=lion"};
  const Recipe recipe = tiny_recipe(dir.path(), lion);
  const Outcome whole = run_threads(recipe, dir / "whole", 2);
  run_threads(recipe, dir / "stopped", 2, {.stop_after = 2});
  CHECK_THROWS_WITH_AS(run_threads(tiny_recipe(dir.path()), dir / "stopped", 2),
                       doctest::Contains("stage.0.optimizer"), Error);
  CHECK(same_bits(whole, run_threads(recipe, dir / "stopped", 2)));
  CHECK(whole.records.back().loss < whole.records.front().loss);
}

TEST_CASE("recipe: plan keys reach the plan and belong to what a resume must keep") {
  TempDir dir;
  const Recipe recipe = tiny_recipe(dir.path(), {"stage.0.image_cost=12.5", "stage.0.oversize=drop",
                                                 "stage.0.max_attention_pairs=500"});
  const StageMemory memory = memory_of(recipe, 0);
  CHECK(memory.costliest.packs.at(0).attention_pairs <= 500);
  CHECK(resume_contract(recipe).at("stage.0.plan") == Json{"drop", 500, 12.5});
  CHECK_FALSE(resume_contract(recipe).contains("stage.1.plan"));
}
