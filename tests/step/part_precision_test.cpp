#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <algorithm>

#include "lib/step/check.h"
#include "tests/step/toy_model.h"
#include "tests/step/toy_trainer.h"

using namespace mm;
using namespace mm::step;

namespace {

/// The toy's weights in each part's dtype, and its pictures in vision's.
struct Mixed {
  model::Model model = toy::make_model();
  std::vector<at::ScalarType> compute;
  std::vector<at::Tensor> weights;
  model::Batch batch = toy::make_batch({.tokens = 9, .images = 2}, 1);

  explicit Mixed(std::vector<at::ScalarType> dtypes) : compute(std::move(dtypes)) {
    weights = toy::make_weights(model, 1);
    for (size_t p = 0; p < weights.size(); ++p)
      weights[p] = weights[p].to(compute[static_cast<size_t>(model.params[p].part)]);
    batch.pixel_values = batch.pixel_values.to(compute[0]);
  }
};

struct SeenGradients final : model::GradSink {
  void add(model::ParamId id, const at::Tensor& grad) override {
    dtypes[id] = grad.scalar_type();
    sums[id] = sums[id].defined() ? sums[id] + grad.to(at::kDouble) : grad.to(at::kDouble);
  }
  std::vector<at::ScalarType> dtypes = std::vector<at::ScalarType>(toy::kParams);
  std::vector<at::Tensor> sums = std::vector<at::Tensor>(toy::kParams);
};

SeenGradients gradients_of(const Mixed& mixed) {
  BuildOptions options{.trainable = toy::all_but(mixed.model, {}), .compute = mixed.compute};
  options.buckets = toy::make_buckets(mixed.model, options.trainable, 2);
  toy::Rank rank(mixed.model, options, mixed.weights, {mixed.batch}, nullptr);
  CHECK(check(rank.program).empty());
  SeenGradients seen;
  Executor executor(
      mixed.model, rank.program,
      {.batches = &rank.source, .params = &rank.store, .gradients = &seen, .hooks = &rank.store});
  executor.run({.step = 1, .global_targets = toy::count_targets({mixed.batch})});
  return seen;
}

}  // namespace

TEST_CASE("precision: each part counts in its own dtype, gradients cross the borders") {
  const SeenGradients exact = gradients_of(Mixed({at::kDouble, at::kDouble, at::kDouble}));
  const std::vector<std::pair<std::vector<at::ScalarType>, double>> cases = {
      {{at::kFloat, at::kDouble, at::kFloat}, 1e-5},
      {{at::kBFloat16, at::kFloat, at::kFloat}, 3e-2},
      {{at::kFloat, at::kFloat, at::kBFloat16}, 5e-2},
      {{at::kHalf, at::kFloat, at::kBFloat16}, 5e-2}};
  for (const auto& [dtypes, tolerance] : cases) {
    const Mixed mixed(dtypes);
    const SeenGradients seen = gradients_of(mixed);
    for (int p = 0; p < toy::kParams; ++p) {
      CAPTURE(p);
      CHECK((seen.dtypes[p] == dtypes[static_cast<size_t>(mixed.model.params[p].part)]));
      const double error = (seen.sums[p] - exact.sums[p]).norm().item<double>();
      CHECK(error < tolerance * exact.sums[p].norm().item<double>());
    }
  }
}

TEST_CASE("precision: a tied weight's two uses end in one accumulator") {
  const Mixed mixed({at::kFloat, at::kFloat, at::kFloat});
  BuildOptions options{.trainable = toy::all_but(mixed.model, {})};
  options.buckets = toy::make_buckets(mixed.model, options.trainable, 2);
  toy::Rank rank(mixed.model, options, mixed.weights, {mixed.batch}, nullptr);
  rank.step(toy::count_targets({mixed.batch}));
  const toy::Reference whole =
      toy::plain_loop(mixed.model, mixed.weights, options.trainable, {mixed.batch});
  CHECK(at::allclose(rank.store.gradient(toy::kEmbedding),
                     whole.gradients[toy::kEmbedding].to(at::kDouble), 1e-5, 1e-7));
  int rows = 0;
  for (const BucketRow& bucket : rank.program.buckets)
    rows += static_cast<int>(
        std::count(bucket.params.begin(), bucket.params.end(), static_cast<int>(toy::kEmbedding)));
  CHECK(rows == 1);
}
