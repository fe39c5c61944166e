#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cmath>

#include "lib/dist/thread_group.h"
#include "lib/run/activation_watch.h"
#include "tests/run/tiny_run.h"

using namespace mm::run;
using namespace mm::run::test;
using mm::data::test::TempDir;

namespace {

void check_same(const std::map<std::string, double>& a, const std::map<std::string, double>& b) {
  REQUIRE(a.size() == b.size());
  for (const auto& [name, value] : a) {
    CAPTURE(name);
    CHECK(b.at(name) == doctest::Approx(value).epsilon(1e-9));
  }
}

}  // namespace

TEST_CASE("tracked metrics: by part, modality, source and block, the same for every layout") {
  TempDir dir;
  const Recipe recipe = tiny_recipe(dir.path(), {"metrics.every.activations=2"});
  const Outcome one = run_threads(recipe, dir / "one", 1);
  for (const StepRecord& step : one.records) {
    double squares = 0;
    for (const auto& [part, norm] : step.part_norms) squares += norm * norm;
    CHECK(std::sqrt(squares) == doctest::Approx(step.grad_norm).epsilon(1e-9));
    CHECK(step.part_norms.size() == (step.stage == "all" ? 3 : 1));
    CHECK(std::isnan(step.vision_text_ratio()) == (step.stage != "all"));
    REQUIRE(step.loss_by_source.size() == 1);
    CHECK(step.loss_by_source.begin()->second == doctest::Approx(step.loss).epsilon(1e-9));
    const auto [low, high] =
        std::minmax(step.loss_by.begin()->second, std::prev(step.loss_by.end())->second);
    CHECK(low <= step.loss * (1 + 1e-9));
    CHECK(high >= step.loss * (1 - 1e-9));
    CHECK(step.activations.empty() == (step.step % 2 != 0));
    CHECK(step.samples_s > 0);
  }
  for (int ranks : {2, 4}) {
    const Outcome many = run_threads(recipe, dir / std::to_string(ranks), ranks);
    for (size_t i = 0; i < one.records.size(); ++i) {
      const StepRecord &a = one.records[i], &b = many.records[i];
      check_same(a.part_norms, b.part_norms);
      check_same(a.loss_by, b.loss_by);
      check_same(a.loss_by_source, b.loss_by_source);
      REQUIRE(a.activations.size() == b.activations.size());
      for (const auto& [block, moments] : a.activations) {
        CAPTURE(block);
        CHECK(b.activations.at(block).mean == doctest::Approx(moments.mean).epsilon(1e-6));
        CHECK(b.activations.at(block).variance == doctest::Approx(moments.variance).epsilon(1e-6));
      }
    }
  }
}

TEST_CASE("tracked metrics: a run writes the groups in the steps that the recipe says") {
  TempDir dir;
  const Recipe recipe = tiny_recipe(
      dir.path(), {"metrics.every.parts=3", "metrics.every.sources=0", "metrics.every.speed=4",
                   "metrics.every.memory=0", "metrics.every.devices=2"});
  run_threads(recipe, dir / "run", 2);
  for (const StepRecord& step : read_metrics(dir / "run")) {
    CHECK(step.part_norms.empty() == (step.step % 3 != 0));
    CHECK(step.loss_by.empty());
    CHECK(std::isnan(step.step_ms) == (step.step % 4 != 0));
    CHECK(std::isnan(step.memory_gib));
    CHECK(std::isnan(step.cpu_use) == (step.step % 2 != 0));
  }
  CHECK(std::filesystem::exists(dir / "run" / "metrics.prom"));
}

TEST_CASE("metrics.every: a metric without a key of its own has its group's frequency") {
  TempDir dir;
  const MetricSchedule usual = tiny_recipe(dir.path()).metrics;
  for (const ScheduledMetric& metric : kScheduledMetrics)
    CHECK(usual.*metric.every == MetricSchedule().*metric.every);
  const Recipe recipe =
      tiny_recipe(dir.path(), {"metrics.every.speed=4", "metrics.every.mfu=2",
                               "metrics.every.data_wait_ms=0", "metrics.every.loss=3",
                               "metrics.every.activations=5", "metrics.every.activation_mean=0"});
  CHECK(recipe.metrics.tokens_s == 4);
  CHECK(recipe.metrics.step_ms == 4);
  CHECK(recipe.metrics.activation_variance == 5);
  run_threads(recipe, dir / "run", 2);
  for (const StepRecord& step : read_metrics(dir / "run")) {
    CHECK(std::isnan(step.tokens_s) == (step.step % 4 != 0));
    CHECK(std::isnan(step.mfu) == (step.step % 2 != 0));
    CHECK(std::isnan(step.data_wait_ms));
    CHECK(std::isnan(step.loss) == (step.step % 3 != 0));
    CHECK(!step.to_json().contains("loss") == (step.step % 3 != 0));
    CHECK(step.grad_norm > 0);
    CHECK(step.activations.empty() == (step.step % 5 != 0));
    for (const auto& [block, moments] : step.activations) {
      CHECK(std::isnan(moments.mean));
      CHECK(moments.variance >= 0);
    }
  }
}

TEST_CASE("activation watch: mean and variance of the values of all micro-batches") {
  mm::model::Model model;
  const mm::model::Slot hidden = model.add_slot("hidden.0");
  const mm::model::Slot ids = model.add_slot("ids");
  mm::dist::run_thread_ranks(2, {.name = "control"}, [&](mm::dist::Group& control) {
    ActivationWatch watch(model);
    watch.saw(hidden, at::ones({3}));  // not watched yet
    watch.watch(true);
    const at::Tensor all = at::arange(12, at::kDouble).reshape({4, 3});
    for (int64_t row = control.rank(); row < 4; row += 2) watch.saw(hidden, all[row]);
    watch.saw(ids, at::arange(3));
    watch.saw(hidden, at::empty({0, 3}));
    const auto moments = watch.moments(control);
    REQUIRE(moments.size() == 1);
    CHECK(moments.at("hidden.0").mean == doctest::Approx(5.5));
    CHECK(moments.at("hidden.0").variance == doctest::Approx(143.0 / 12));
  });
}
