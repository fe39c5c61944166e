#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cmath>

#include "lib/dist/thread_group.h"
#include "tests/step/toy_model.h"
#include "tests/step/toy_trainer.h"

using namespace mm;
using namespace mm::step;

namespace {

// One scalar weight w; a token of value x costs (w - x)^2 / 2.
model::Model scalar_model() {
  model::Model model;
  model.add_param({.name = "w", .shape = {1}});
  model.loss_slot = model.add_slot("loss");
  model::Segment segment{
      .name = "square", .out = {model.loss_slot}, .params = {0}, .yields_loss = true};
  segment.forward = [](const model::SegmentContext& c, std::span<const at::Tensor>) {
    return std::vector<at::Tensor>{(c.params.get(0) - c.batch.pixel_values).square().sum() / 2};
  };
  model.blocks.push_back({"square", model::Part::kLanguage, {segment}});
  return model;
}

model::Batch scalar_batch(const std::vector<double>& values) {
  model::Batch batch;
  batch.pixel_values = at::tensor(values, at::kDouble);
  batch.sizes.tokens = batch.sizes.targets = static_cast<int64_t>(values.size());
  return batch;
}

// Losses given: at w = 0 a value of sqrt(2 l) costs l.
model::Batch loss_batch(std::vector<double> losses) {
  for (double& l : losses) l = std::sqrt(2 * l);
  return scalar_batch(losses);
}

struct Result {
  double loss = 0, norm = 0;
  bool updated = false;
  std::vector<at::Tensor> gradients, weights;
};

// batches[rank][micro-batch]; what rank 0 sees after one step, all ranks being equal in bits.
Result run_ranks(const model::Model& model, const std::vector<at::Tensor>& weights,
                 const std::vector<std::vector<model::Batch>>& batches) {
  const int ranks = static_cast<int>(batches.size());
  BuildOptions options{.micro_batches = static_cast<int>(batches[0].size()),
                       .trainable = toy::all_but(model, {}),
                       .data_ranks = ranks};
  options.buckets = toy::make_buckets(model, options.trainable, 2);
  double targets = 0;
  for (const auto& mine : batches) targets += toy::count_targets(mine);
  std::vector<Result> results(ranks);
  dist::run_thread_ranks(ranks, {}, [&](dist::Group& group) {
    toy::Rank rank(model, options, weights, batches[group.rank()], &group);
    const StepReport report = rank.step(targets);
    Result& result = results[group.rank()];
    result = {report.loss(), report.grad_norm, report.updated, {}, {}};
    for (int p = 0; p < static_cast<int>(model.params.size()); ++p) {
      result.gradients.push_back(rank.store.gradient(p).clone());
      result.weights.push_back(rank.store.get(p).detach());
    }
    CHECK(rank.store.updates == (report.updated ? 1 : 0));
    for (const at::Tensor& m : rank.store.momentum)
      CHECK((report.updated || m.abs().sum().item<double>() == 0));
  });
  for (const Result& result : results) {
    CHECK(result.loss == results[0].loss);
    for (size_t p = 0; p < result.weights.size(); ++p)
      CHECK(at::equal(result.weights[p], results[0].weights[p]));
  }
  return results[0];
}

std::vector<at::Tensor> zero_weight() { return {at::zeros({1}, at::kDouble)}; }

model::Batch without_targets(model::Batch batch) {
  batch.targets.fill_(-100);
  batch.sizes.targets = 0;
  return batch;
}

}  // namespace

TEST_CASE("C30: the loss of unequal ranks is the mean over tokens, not over ranks") {
  const Result result =
      run_ranks(scalar_model(), zero_weight(), {{loss_batch({1, 1, 1, 1, 1})}, {loss_batch({7})}});
  CHECK(result.loss == doctest::Approx(2.0).epsilon(1e-12));
}

TEST_CASE("C30: the gradient of unequal ranks, one of them empty, is that of all tokens") {
  const Result result = run_ranks(
      scalar_model(), zero_weight(),
      {{scalar_batch({1, 2, 3})}, {scalar_batch({8})}, {scalar_batch({})}, {scalar_batch({5, 1})}});
  CHECK(result.gradients[0].item<double>() == doctest::Approx(-20.0 / 6).epsilon(1e-12));
  CHECK(result.norm == doctest::Approx(20.0 / 6).epsilon(1e-12));
}

TEST_CASE("C31: accumulation weighs tokens, not micro-batches") {
  const Result result =
      run_ranks(scalar_model(), zero_weight(),
                {{loss_batch({2, 2, 2, 2}), loss_batch({10}), loss_batch({4, 4, 4})}});
  CHECK(result.loss == doctest::Approx(3.75).epsilon(1e-12));
}

TEST_CASE("C31: 8 samples as 1x8, 2x4, 4x2 and 8x1 give the same loss, norm and weights") {
  const model::Model model = toy::make_model();
  const auto weights = toy::make_weights(model, 3);
  std::vector<Result> results;
  for (int micro_batches : {1, 2, 4, 8}) {
    std::vector<model::Batch> batches;
    for (int i = 0; i < 8; ++i) {
      const model::Batch sample =
          toy::make_batch({.tokens = 3 + i, .images = i % 2, .skip = 1 + i % 4 + (i % 4 == 0)}, i);
      if (i % (8 / micro_batches) == 0) {
        batches.push_back(sample);
      } else {
        batches.back() = toy::concatenate(batches.back(), sample);
      }
    }
    results.push_back(run_ranks(model, weights, {batches}));
  }
  for (const Result& result : results) {
    CHECK(result.loss == doctest::Approx(results[0].loss).epsilon(1e-12));
    CHECK(result.norm == doctest::Approx(results[0].norm).epsilon(1e-12));
    for (size_t p = 0; p < weights.size(); ++p)
      CHECK(at::allclose(result.weights[p], results[0].weights[p], 1e-12, 1e-13));
  }
}

TEST_CASE("C32: a rank without any target adds nothing") {
  const model::Model model = toy::make_model();
  const auto weights = toy::make_weights(model, 3);
  const model::Batch full = toy::make_batch({}, 1), none = without_targets(toy::make_batch({}, 2));
  const Result alone = run_ranks(model, weights, {{full}});
  const Result both = run_ranks(model, weights, {{full}, {none}});
  CHECK(both.loss == alone.loss);
  for (size_t p = 0; p < weights.size(); ++p)
    CHECK(at::equal(both.gradients[p], alone.gradients[p]));
}

TEST_CASE("C32: a step without any target updates nothing and has no NaN") {
  const model::Model model = toy::make_model();
  const auto weights = toy::make_weights(model, 3);
  const model::Batch none = without_targets(toy::make_batch({}, 2));
  const Result result = run_ranks(model, weights, {{none, none}, {none, none}});
  CHECK_FALSE(result.updated);
  CHECK(result.loss == 0);
  CHECK(result.norm == 0);
  for (size_t p = 0; p < weights.size(); ++p) CHECK(at::equal(result.weights[p], weights[p]));
}

TEST_CASE("C40: tower gradients with a picture on one rank only equal the one-process run") {
  const model::Model model = toy::make_model();
  const auto weights = toy::make_weights(model, 3);
  const model::Batch picture = toy::make_batch({}, 1), text = toy::make_batch({.images = 0}, 2);
  const Result together = run_ranks(model, weights, {{toy::concatenate(picture, text)}});
  const Result split = run_ranks(model, weights, {{picture}, {text}});
  for (size_t p = 0; p < weights.size(); ++p)
    CHECK(at::allclose(split.gradients[p], together.gradients[p], 1e-12, 1e-14));
  CHECK(split.gradients[toy::kTower].abs().max().item<double>() > 0);
}

TEST_CASE("C40: with text only on all ranks the language model moves and the tower does not") {
  const model::Model model = toy::make_model();
  const auto weights = toy::make_weights(model, 3);
  const Result result = run_ranks(
      model, weights, {{toy::make_batch({.images = 0}, 1)}, {toy::make_batch({.images = 0}, 2)}});
  CHECK(at::equal(result.weights[toy::kTower], weights[toy::kTower]));
  CHECK(at::equal(result.weights[toy::kProjector], weights[toy::kProjector]));
  CHECK_FALSE(at::equal(result.weights[toy::kLayer1In], weights[toy::kLayer1In]));
}

TEST_CASE("C40: an empty rank runs every instruction and adds nothing") {
  const model::Model model = toy::make_model();
  const auto weights = toy::make_weights(model, 3);
  const Result alone = run_ranks(model, weights, {{toy::make_batch({}, 1)}});
  const Result with = run_ranks(
      model, weights, {{toy::make_batch({}, 1)}, {toy::make_batch({.tokens = 0, .images = 0}, 1)}});
  for (size_t p = 0; p < weights.size(); ++p)
    CHECK(at::equal(with.gradients[p], alone.gradients[p]));
}
