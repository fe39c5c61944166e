#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cmath>

#include "lib/base/error.h"
#include "lib/run/run_snapshot.h"
#include "lib/run/step_setup.h"
#include "tests/run/tiny_run.h"

using namespace mm;
using namespace mm::run;
using namespace mm::run::test;
using data::test::TempDir;

namespace {

std::vector<std::string> with(std::vector<std::string> set,
                              std::initializer_list<const char*> more) {
  set.insert(set.end(), more.begin(), more.end());
  return set;
}

int updates_of(const std::vector<StepRecord>& records) {
  int updates = 0;
  for (const StepRecord& record : records) updates += record.skipped ? 0 : 1;
  return updates;
}

}  // namespace

TEST_CASE(
    "C35: overflowing fp16 steps leave weights and schedule, halve the scale, move the data") {
  TempDir dir;
  // So large a scale overflows until it has been halved often enough.
  const std::vector<std::string> set = {"precision.compute=fp16", "precision.loss_scale=1048576",
                                        "stage.0.steps=12",
                                        "stage.0.schedule={kind=\"cosine\",warmup_steps=4}"};
  const Recipe recipe = tiny_recipe(dir.path(), set);
  const Outcome whole = run_threads(recipe, dir / "whole", 1, {.stop_after = 12});
  REQUIRE(whole.records.size() == 12);
  const int updates = updates_of(whole.records);
  CHECK(updates < 12);
  REQUIRE(updates > 0);
  CHECK(whole.records[0].skipped);
  CHECK(whole.records[0].skip_reason == "overflow");
  CHECK(whole.records.back().skip_reason == "");
  // The rate is that of the update count: a skipped step shows it again.
  double skipped_before = 0;
  for (size_t i = 0; i < whole.records.size(); ++i) {
    CHECK(std::isfinite(whole.records[i].loss));
    const double count = static_cast<double>(i) - skipped_before;
    if (count < 4) CHECK(whole.records[i].lr.at("language") == doctest::Approx(3e-3 * count / 4));
    skipped_before += whole.records[i].skipped ? 1 : 0;
  }
  const auto checkpoint = state::open_checkpoint(dir / "whole");
  const RunSnapshot snapshot = RunSnapshot::from_json(checkpoint.manifest.state, "state");
  CHECK(snapshot.update_count == updates);
  CHECK(snapshot.stage_step == 12);
  CHECK(snapshot.loss_scale.scale == 1048576 / std::pow(2.0, 12 - updates));
  CHECK(snapshot.loss_scale.good_steps == updates);

  SUBCASE("all of it survives a resume") {
    for (int64_t stop : {1, 3, 7}) {
      const std::filesystem::path run = dir / ("stop" + std::to_string(stop));
      run_threads(recipe, run, 1, {.stop_after = stop});
      const Outcome resumed = run_threads(recipe, run, 1, {.stop_after = 12});
      CHECK(same_bits(whole, resumed));
      CHECK(resumed.records.back().lr == whole.records.back().lr);
    }
  }
  SUBCASE("two ranks skip the same steps") {
    const Outcome two = run_threads(recipe, dir / "two", 2, {.stop_after = 12});
    for (size_t i = 0; i < whole.records.size(); ++i)
      CHECK(two.records[i].skipped == whole.records[i].skipped);
  }
}

TEST_CASE("fp16: a run whose gradients overflow at the smallest scale ends") {
  TempDir dir;
  // Pixels of 1e6 are infinite in fp16, so no scale helps; 2^-23 is halved once.
  const Recipe recipe =
      tiny_recipe(dir.path(), {"precision.compute=fp16", "model.image_std=[1e-6, 1e-6, 1e-6]",
                               "precision.loss_scale=1.1920928955078125e-07", "stage.0.steps=9"});
  CHECK_THROWS_WITH_AS(run_threads(recipe, dir / "run", 1),
                       doctest::Contains("at the smallest loss scale"), NumericalError);
  const std::vector<StepRecord> records = read_metrics(dir / "run");
  REQUIRE(records.size() == 1);
  CHECK(records[0].skip_reason == "overflow");
  CHECK_THROWS_AS(run_threads(recipe, dir / "two", 2), Error);
  CHECK(read_metrics(dir / "two").size() == 1);
}

TEST_CASE("fp16 with scaling follows fp32: the losses of nine steps differ by at most 1 %") {
  TempDir dir;
  const Outcome fp32 =
      run_threads(tiny_recipe(dir.path(), {"precision.compute=fp32"}), dir / "fp32", 1);
  const Outcome fp16 =
      run_threads(tiny_recipe(dir.path(), {"precision.compute=fp16", "precision.loss_scale=1024"}),
                  dir / "fp16", 1);
  CHECK(updates_of(fp16.records) == 9);
  for (size_t i = 0; i < fp32.records.size(); ++i)
    CHECK(fp16.records[i].loss == doctest::Approx(fp32.records[i].loss).epsilon(1e-2));
}

TEST_CASE("parts in their own dtypes follow fp32, on one rank and on two") {
  TempDir dir;
  const Outcome fp32 =
      run_threads(tiny_recipe(dir.path(), {"precision.compute=fp32"}), dir / "fp32", 1);
  const Recipe mixed = tiny_recipe(
      dir.path(), {"precision.compute=fp32", "precision.vision=bf16", "precision.language=bf16"});
  for (int ranks : {1, 2}) {
    const Outcome parts = run_threads(mixed, dir / ("mixed" + std::to_string(ranks)), ranks);
    for (size_t i = 0; i < fp32.records.size(); ++i)
      CHECK(parts.records[i].loss == doctest::Approx(fp32.records[i].loss).epsilon(3e-2));
  }
  CHECK_THROWS_WITH_AS(tiny_recipe(dir.path(), {"precision.vision=bf16"}),
                       doctest::Contains("float64"), UsageError);
}

TEST_CASE("a part that no stage trains has no master and its checkpoint is 2 bytes an element") {
  TempDir dir;
  const std::vector<std::string> set = {"precision.compute=bf16",
                                        "stage.1.train=[\"projector\", \"language\"]",
                                        "stage.1.lr={projector=1e-2, language=1e-3}"};
  const Recipe recipe = tiny_recipe(dir.path(), set);
  const Outcome whole = run_threads(recipe, dir / "run", 2);
  CHECK(whole.code == ExitCode::kDone);
  const auto checkpoint = state::open_checkpoint(dir / "run");
  for (const auto& record : checkpoint.manifest.tensors) {
    const bool vision = record.name.find("vision_tower") != std::string::npos;
    CHECK_MESSAGE((record.dtype == ckpt::DType::kBF16) == vision, record.name);
    if (vision) CHECK_FALSE(record.name.starts_with("optimizer."));
  }
  run_threads(recipe, dir / "stopped", 2, {.stop_after = 6});
  CHECK(same_bits(whole, run_threads(recipe, dir / "stopped", 2)));

  SUBCASE("one that an earlier stage trains keeps it until then") {
    const Recipe early = tiny_recipe(
        dir.path(), with(set, {"stage.0.train=[\"vision\"]", "stage.0.lr={vision=1e-3}"}));
    const Outcome trained = run_threads(early, dir / "early", 1);
    run_threads(early, dir / "resumed", 1, {.stop_after = 6});
    CHECK(same_bits(trained, run_threads(early, dir / "resumed", 1)));
    CHECK(trained.weights.begin()->second.defined());
  }
}

TEST_CASE("recompute changes nothing of a run, to the bit") {
  TempDir dir;
  const Outcome kept = run_threads(tiny_recipe(dir.path()), dir / "kept", 2);
  for (const char* mode : {"block", "selective"}) {
    const Recipe recipe = tiny_recipe(dir.path(), {std::string("recompute.mode=") + mode});
    const Outcome again = run_threads(recipe, dir / mode, 2);
    CHECK(same_bits(kept, again));
    for (size_t i = 0; i < kept.records.size(); ++i)
      CHECK(again.records[i].loss == kept.records[i].loss);
  }
  CHECK_THROWS_WITH_AS(tiny_recipe(dir.path(), {"recompute.pieces=[\"norm\"]"}),
                       doctest::Contains("attention"), UsageError);
}

TEST_CASE("frozen blocks ahead change nothing of a run, resumes included, to the bit") {
  TempDir dir;
  const std::vector<std::string> set = {"stage.1.train=[\"language\"]",
                                        "stage.1.lr={language=1e-3}"};
  const Outcome plain = run_threads(tiny_recipe(dir.path(), set), dir / "plain", 2);
  const Recipe recipe = tiny_recipe(dir.path(), with(set, {"frozen.ahead=true"}));
  CHECK(same_bits(plain, run_threads(recipe, dir / "ahead", 2)));
  run_threads(recipe, dir / "stopped", 2, {.stop_after = 3});
  CHECK(same_bits(plain, run_threads(recipe, dir / "stopped", 2)));

  // With some processors a row's last bit depends on how many rows LibTorch multiplies.
  const Recipe chunks =
      tiny_recipe(dir.path(), with(set, {"frozen.ahead=true", "frozen.pictures_at_once=1"}));
  const Outcome in_chunks = run_threads(chunks, dir / "chunks", 2);
  CHECK(weight_difference(plain, in_chunks) < 1e-12);
  run_threads(chunks, dir / "stopped chunks", 2, {.stop_after = 3});
  CHECK(same_bits(in_chunks, run_threads(chunks, dir / "stopped chunks", 2)));
}
