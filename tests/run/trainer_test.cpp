#include "lib/run/trainer.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "lib/base/error.h"
#include "tests/run/tiny_run.h"

using namespace mm::run;
using namespace mm::run::test;
using mm::data::test::TempDir;

namespace {

/// (stage, epoch, sample) of all ledger lines.
std::multiset<std::tuple<std::string, uint64_t, uint64_t>> ledger_samples(
    const std::filesystem::path& run) {
  std::multiset<std::tuple<std::string, uint64_t, uint64_t>> samples;
  for (const LedgerRow& row : read_ledger(run)) {
    for (uint64_t sample : row.samples) samples.insert({row.stage, row.epoch, sample});
  }
  return samples;
}

std::map<int64_t, std::set<uint64_t>> samples_by_step(const std::filesystem::path& run) {
  std::map<int64_t, std::set<uint64_t>> steps;
  for (const LedgerRow& row : read_ledger(run))
    steps[row.step].insert(row.samples.begin(), row.samples.end());
  return steps;
}

}  // namespace

TEST_CASE(
    "law 1: 1, 2 and 4 ranks, with and without accumulation, give the same losses and weights to "
    "1e-9 in float64") {
  TempDir dir;
  const Recipe recipe = tiny_recipe(dir.path());
  const Outcome one = run_threads(recipe, dir / "one", 1);
  CHECK(one.code == mm::ExitCode::kDone);
  REQUIRE(one.records.size() == 9);
  for (int ranks : {2, 3, 4}) {
    const Outcome many = run_threads(recipe, dir / std::to_string(ranks), ranks);
    CHECK_MESSAGE(weight_difference(one, many) < 1e-9, ranks);
    for (size_t i = 0; i < one.records.size(); ++i) {
      CHECK(many.records[i].loss == doctest::Approx(one.records[i].loss).epsilon(1e-10));
      CHECK(many.records[i].grad_norm == doctest::Approx(one.records[i].grad_norm).epsilon(1e-9));
    }
    CHECK(samples_by_step(dir / std::to_string(ranks)) == samples_by_step(dir / "one"));
  }
}

TEST_CASE(
    "law 2: stopped after any step and resumed, across stage borders, is bit-equal to the run that "
    "never stopped") {
  TempDir dir;
  const Recipe recipe = tiny_recipe(dir.path());
  const Outcome whole = run_threads(recipe, dir / "whole", 2);
  for (int64_t stop : {1, 3, 4, 5, 8}) {
    const std::filesystem::path run = dir / ("stop" + std::to_string(stop));
    CHECK(run_threads(recipe, run, 2, {.stop_after = stop}).code == mm::ExitCode::kSavedRunAgain);
    const Outcome resumed = run_threads(recipe, run, 2);
    CHECK(resumed.code == mm::ExitCode::kDone);
    CHECK_MESSAGE(same_bits(whole, resumed), stop);
    const std::vector<StepRecord> steps = read_metrics(run);
    REQUIRE(steps.size() == 9);
    for (size_t i = 0; i < steps.size(); ++i) {
      CHECK(steps[i].loss == read_metrics(dir / "whole")[i].loss);
      CHECK(steps[i].lr == whole.records[i].lr);
    }
    CHECK(ledger_samples(run) == ledger_samples(dir / "whole"));
  }
}

TEST_CASE(
    "law 2 on another layout: stopped on 4 ranks, resumed on 1, the same samples in the same steps "
    "and the same weights to 1e-9") {
  TempDir dir;
  const Recipe recipe = tiny_recipe(dir.path());
  const Outcome whole = run_threads(recipe, dir / "whole", 2);
  run_threads(recipe, dir / "other", 4, {.stop_after = 3});
  const Outcome resumed = run_threads(recipe, dir / "other", 1);
  CHECK(weight_difference(whole, resumed) < 1e-9);
  CHECK(samples_by_step(dir / "other") == samples_by_step(dir / "whole"));
}

TEST_CASE("law 3: the ledger holds each sample once an epoch") {
  TempDir dir;
  const Recipe recipe = tiny_recipe(dir.path(), {"stage.0.steps=20"});
  run_threads(recipe, dir / "run", 2);
  std::map<uint64_t, std::multiset<uint64_t>> epochs;
  uint64_t last = 0;
  for (const auto& [stage, epoch, sample] : ledger_samples(dir / "run")) {
    if (stage != "language") continue;
    epochs[epoch].insert(sample);
    last = std::max(last, epoch);
  }
  REQUIRE(last >= 1);
  for (uint64_t epoch = 0; epoch < last; ++epoch) {
    CHECK(epochs[epoch].size() == 24);
    CHECK(std::set<uint64_t>(epochs[epoch].begin(), epochs[epoch].end()).size() == 24);
  }
}

TEST_CASE("frozen parts keep their bits and have no optimizer state") {
  TempDir dir;
  const Recipe recipe =
      tiny_recipe(dir.path(), {"stage.1.train=[\"projector\"]", "stage.1.lr={projector=1e-2}"});
  const Outcome first = run_threads(recipe, dir / "run", 2, {.stop_after = 4});
  const Outcome second = run_threads(recipe, dir / "run", 2);
  for (const auto& [name, value] : first.weights) {
    const bool projector = name.starts_with("multi_modal_projector");
    CHECK_MESSAGE(value.equal(second.weights.at(name)) != projector, name);
  }
  const auto checkpoint = mm::state::open_checkpoint(dir / "run");
  for (const auto& record : checkpoint.manifest.tensors) {
    if (record.name.starts_with("optimizer."))
      CHECK(record.name.find("multi_modal_projector") != std::string::npos);
  }
}

TEST_CASE("C43: learning rates of a resumed run equal those of the unbroken one bit for bit") {
  TempDir dir;
  const Recipe recipe = tiny_recipe(
      dir.path(), {"stage.0.steps=8", "stage.0.schedule={kind=\"cosine\",warmup_steps=4}"});
  const Outcome whole = run_threads(recipe, dir / "whole", 1);
  CHECK(whole.records[0].lr.at("language") == 0);
  CHECK(whole.records[4].lr.at("language") == 3e-3);
  for (int64_t stop = 1; stop < 8; ++stop) {
    const std::filesystem::path run = dir / std::to_string(stop);
    run_threads(recipe, run, 1, {.stop_after = stop});
    run_threads(recipe, run, 1);
    const std::vector<StepRecord> steps = read_metrics(run);
    for (size_t i = 0; i < steps.size(); ++i) CHECK(steps[i].lr == whole.records[i].lr);
  }
}

TEST_CASE("resume: a changed batch is refused with both values, a changed rate is not") {
  TempDir dir;
  run_threads(tiny_recipe(dir.path()), dir / "run", 1, {.stop_after = 2});
  try {
    run_threads(tiny_recipe(dir.path(), {"stage.0.packs_per_step=2"}), dir / "run", 1);
    FAIL("not refused");
  } catch (const mm::Error& error) {
    CHECK(error.exit_code() == mm::ExitCode::kUsage);
    CHECK(
        std::string(error.what())
            .find("stage.0.batch: [24,4,0,\"tight\"] in the checkpoint, [24,2,0,\"tight\"] now") !=
        std::string::npos);
  }
  CHECK(run_threads(tiny_recipe(dir.path(), {"stage.0.lr.language=1e-4"}), dir / "run", 1).code ==
        mm::ExitCode::kDone);
  CHECK_THROWS_AS(run_threads(tiny_recipe(dir.path()), dir / "run", 1, {.resume = Resume::kNever}),
                  mm::Error);
  CHECK_THROWS_AS(run_threads(tiny_recipe(dir.path()), dir / "new", 1, {.resume = Resume::kMust}),
                  mm::Error);
}

TEST_CASE("init.from: training starts from another run's weights") {
  TempDir dir;
  const Outcome first = run_threads(tiny_recipe(dir.path()), dir / "first", 1);
  const Outcome second = run_threads(
      tiny_recipe(dir.path(), {"init.from=\"" + (dir / "first").string() + "\"", "stage.0.steps=1",
                               "stage.0.lr.language=0", "stage.1.steps=1",
                               "stage.1.lr={vision=0,projector=0,language=0}"}),
      dir / "second", 1);
  CHECK(same_bits(first, second));
}

TEST_CASE("C44: with only broken checkpoints the run ends with an error, never a fresh start") {
  TempDir dir;
  const Recipe recipe = tiny_recipe(dir.path());
  run_threads(recipe, dir / "run", 1, {.stop_after = 2});
  for (const auto& entry : std::filesystem::directory_iterator(dir / "run/ckpt")) {
    if (entry.is_directory())
      std::filesystem::resize_file(entry.path() / "shard-rank-00000.safetensors", 100);
  }
  CHECK_THROWS_AS(run_threads(recipe, dir / "run", 1), mm::DataError);
}
