#include "lib/run/loss_weights.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cmath>

#include "lib/base/error.h"
#include "tests/run/tiny_run.h"

using namespace mm;
using namespace mm::run;
using namespace mm::run::test;
using data::test::TempDir;

namespace {

/// Samples of so many targets; sample s has twice as many tokens.
std::vector<data::SampleSize> sizes_of(const std::vector<int32_t>& targets) {
  std::vector<data::SampleSize> sizes;
  for (int32_t n : targets) sizes.push_back({.tokens = 2 * n + 1, .images = 0, .targets = n});
  return sizes;
}

/// What rank `rank` of `ranks` gets of a step whose packs hold these rows.
data::LoaderStep step_of(const std::vector<data::SampleSize>& sizes,
                         const std::vector<std::vector<uint32_t>>& packs, int rank, int ranks) {
  data::LoaderStep step;
  for (const auto& rows : packs) {
    step.plan.packs.push_back(data::make_pack(sizes, rows));
    step.plan.targets += step.plan.packs.back().targets;
  }
  step.dealt = data::deal_step(step.plan.packs, ranks);
  step.micro_batches.resize(data::micro_batches_per_rank(packs.size(), ranks));
  const auto& mine = step.dealt[static_cast<size_t>(rank)];
  for (size_t m = 0; m < step.micro_batches.size(); ++m) {
    data::MicroBatch& mb = step.micro_batches[m];
    mb.cu_seqlens = {0};
    if (m >= mine.size()) continue;
    for (uint32_t row : packs[mine[m]]) {
      mb.sample_ids.push_back(row);
      for (int32_t t = 0; t < sizes[row].tokens; ++t) {
        mb.tokens.push_back(1);
        mb.targets.push_back(t < sizes[row].targets ? 1 : -100);
      }
      mb.cu_seqlens.push_back(static_cast<int32_t>(mb.tokens.size()));
    }
  }
  return step;
}

/// The loss of a step whose every target of sample s costs `cost[s]`, summed over ranks.
double loss_of(const LossRecipe& recipe, const std::vector<int32_t>& targets,
               const std::vector<std::vector<uint32_t>>& packs, const std::vector<double>& cost,
               int ranks) {
  const std::vector<data::SampleSize> sizes = sizes_of(targets);
  const LossWeights weights(recipe, sizes);
  double sum = 0, divisor = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const data::LoaderStep step = step_of(sizes, packs, rank, ranks);
    divisor = weights.divisor(step.plan);
    for (size_t m = 0; m < step.micro_batches.size(); ++m) {
      const data::MicroBatch& mb = step.micro_batches[m];
      const at::Tensor w = weights.of_micro_batch(step, rank, static_cast<int>(m), at::kDouble);
      for (size_t s = 0; s < mb.sample_ids.size(); ++s) {
        for (int32_t t = mb.cu_seqlens[s]; t < mb.cu_seqlens[s + 1]; ++t) {
          if (mb.targets[t] >= 0)
            sum += cost[mb.sample_ids[s]] * (w.defined() ? w[t].item<double>() : 1.0);
        }
      }
    }
  }
  return divisor > 0 ? sum / divisor : 0;
}

}  // namespace

TEST_CASE("C30: 5 tokens of loss 1 and one of loss 7: 2 by tokens, 4 by micro-batches") {
  const std::vector<int32_t> targets{5, 1};
  const std::vector<std::vector<uint32_t>> packs{{0}, {1}};
  const std::vector<double> cost{1, 7};
  const double root = std::sqrt(5.0);
  for (int ranks : {1, 2, 4}) {
    CAPTURE(ranks);
    CHECK(loss_of({"global_token"}, targets, packs, cost, ranks) == doctest::Approx(2));
    CHECK(loss_of({"micro_mean"}, targets, packs, cost, ranks) == doctest::Approx(4));
    CHECK(loss_of({"sample_mean"}, targets, packs, cost, ranks) == doctest::Approx(4));
    CHECK(loss_of({"sqrt"}, targets, packs, cost, ranks) ==
          doctest::Approx((root + 7) / (root + 1)));
  }
}

TEST_CASE("loss reduction: each equals its definition in double on 1 to 5 ranks") {
  const std::vector<int32_t> targets{3, 0, 8, 1, 5, 2, 0, 4};
  const std::vector<std::vector<uint32_t>> packs{{0, 1}, {2}, {3, 4, 5}, {6}, {7}};
  const std::vector<double> cost{0.5, 9, 1.25, 3, 0.75, 2, 9, 0.1};
  double tokens = 0, all = 0, means = 0, samples = 0, roots = 0, root_sum = 0;
  for (size_t s = 0; s < targets.size(); ++s) {
    const double n = targets[s];
    all += n * cost[s], tokens += n;
    if (n == 0) continue;
    means += cost[s], samples += 1;
    roots += std::sqrt(n) * cost[s], root_sum += std::sqrt(n);
  }
  const double pack0 = 0.5, pack1 = 1.25, pack2 = (3 + 5 * 0.75 + 2 * 2) / 8, pack4 = 0.1;
  const double two0 = (3 * 0.5 + 8 * 1.25) / 11;
  for (int ranks : {1, 2, 3, 5}) {
    CAPTURE(ranks);
    const auto loss = [&](const LossRecipe& recipe) {
      return loss_of(recipe, targets, packs, cost, ranks);
    };
    CHECK(loss({"global_token"}) == doctest::Approx(all / tokens).epsilon(1e-12));
    CHECK(loss({"sample_mean"}) == doctest::Approx(means / samples).epsilon(1e-12));
    CHECK(loss({"sqrt"}) == doctest::Approx(roots / root_sum).epsilon(1e-12));
    // Pack 3 has no targets: it is left out of the mean.
    CHECK(loss({"micro_mean"}) ==
          doctest::Approx((pack0 + pack1 + pack2 + pack4) / 4).epsilon(1e-12));
    CHECK(loss({"micro_mean", 2}) == doctest::Approx((two0 + pack2 + pack4) / 3).epsilon(1e-12));
  }
}

TEST_CASE("loss reduction: a step without targets has divisor 0 and finite weights") {
  for (const char* word : {"global_token", "micro_mean", "sample_mean", "sqrt"}) {
    CHECK(loss_of({word}, {0, 0}, {{0}, {1}}, {1, 1}, 2) == 0);
    CHECK(loss_reduction(word).has_value());
  }
  CHECK_FALSE(loss_reduction("mean").has_value());
}

TEST_CASE("law 1 holds under every loss reduction") {
  TempDir dir;
  for (const char* word : {"global_token", "micro_mean", "sample_mean", "sqrt"}) {
    CAPTURE(word);
    const Recipe recipe = tiny_recipe(
        dir.path(), {std::string("loss.reduction=") + word, "stage.0.steps=3", "stage.1.steps=1"});
    const std::string name = word;
    const Outcome one = run_threads(recipe, dir / (name + "1"), 1);
    for (int ranks : {2, 4}) {
      const Outcome many = run_threads(recipe, dir / (name + std::to_string(ranks)), ranks);
      CHECK(weight_difference(one, many) < 1e-9);
      for (size_t i = 0; i < one.records.size(); ++i)
        CHECK(many.records[i].loss == doctest::Approx(one.records[i].loss).epsilon(1e-10));
    }
  }
}

TEST_CASE("resume: another loss is refused with both values, unless it is allowed") {
  TempDir dir;
  run_threads(tiny_recipe(dir.path()), dir / "run", 1, {.stop_after = 2});
  const Recipe other = tiny_recipe(dir.path(), {"stage.0.loss.reduction=sample_mean"});
  try {
    run_threads(other, dir / "run", 1);
    FAIL("not refused");
  } catch (const Error& error) {
    CHECK(error.exit_code() == ExitCode::kUsage);
    const std::string text = error.what();
    CHECK(text.find("stage.0.loss: null in the checkpoint, [\"sample_mean\",1] now") !=
          std::string::npos);
    CHECK(text.find("--allow-loss-change") != std::string::npos);
  }
  CHECK(run_threads(other, dir / "run", 1, {.allow_loss_change = true}).code == ExitCode::kDone);
}

TEST_CASE("recipe: a stage's loss differs from the run's where it says so") {
  TempDir dir;
  const Recipe recipe =
      tiny_recipe(dir.path(), {"loss.reduction=micro_mean", "loss.micro_packs=4",
                               "stage.1.loss.reduction=sqrt", "stage.1.loss.micro_packs=1"});
  CHECK(recipe.stages[0].loss == LossRecipe{"micro_mean", 4});
  CHECK(recipe.stages[1].loss == LossRecipe{"sqrt", 1});
  CHECK_THROWS_WITH_AS(tiny_recipe(dir.path(), {"loss.micro_packs=2"}),
                       doctest::Contains("micro_mean"), UsageError);
}
