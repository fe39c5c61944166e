#include <doctest/doctest.h>

#include "lib/dist/thread_group.h"
#include "tests/step/toy_model.h"
#include "tests/step/toy_trainer.h"

using namespace mm;
using namespace mm::step;

namespace {

constexpr double kTolerance = 1e-12;

// Lengths differ; every third has no picture, every fifth is empty.
std::vector<model::Batch> make_batches(int count) {
  std::vector<model::Batch> batches;
  for (int i = 0; i < count; ++i) {
    toy::BatchShape shape{
        .tokens = 4 + (i * 5) % 7, .images = i % 3 == 1 ? 0 : 1 + i % 2, .skip = 2 + i % 3};
    if (i % 5 == 3) shape = {.tokens = 0, .images = 0};
    batches.push_back(toy::make_batch(shape, i));
  }
  return batches;
}

struct Case {
  int ranks, micro_batches;
  std::vector<model::ParamId> frozen;
};

void expect_equal(const Case& c) {
  CAPTURE(c.ranks);
  CAPTURE(c.micro_batches);
  CAPTURE(c.frozen.size());
  const model::Model model = toy::make_model();
  const auto weights = toy::make_weights(model, 1);
  const auto batches = make_batches(c.ranks * c.micro_batches);
  const double targets = toy::count_targets(batches);
  BuildOptions options{.micro_batches = c.micro_batches,
                       .trainable = toy::all_but(model, c.frozen),
                       .data_ranks = c.ranks};
  options.buckets = toy::make_buckets(model, options.trainable, 2);
  const toy::Reference reference = toy::plain_loop(model, weights, options.trainable, batches);
  std::vector<double> differences(c.ranks), losses(c.ranks);
  dist::run_thread_ranks(c.ranks, {}, [&](dist::Group& group) {
    const int r = group.rank();
    // Rank r has micro-batches r, r + R, ...: unequal work on every rank.
    std::vector<model::Batch> mine;
    for (int m = 0; m < c.micro_batches; ++m) mine.push_back(batches[m * c.ranks + r]);
    toy::Rank rank(model, options, weights, mine, &group);
    losses[r] = rank.step(targets).loss_sum;
    differences[r] = toy::difference(rank.store, reference);
  });
  for (int r = 0; r < c.ranks; ++r) {
    CHECK(differences[r] < kTolerance);
    CHECK(losses[r] == doctest::Approx(reference.loss_sum).epsilon(kTolerance));
  }
}

}  // namespace

TEST_CASE(
    "executor: 1, 2 and 4 ranks with 1 to 4 micro-batches equal the plain loop over all batches") {
  for (int ranks : {1, 2, 4}) {
    for (int micro_batches : {1, 2, 3, 4}) expect_equal({ranks, micro_batches, {}});
  }
}

TEST_CASE("executor: frozen prefixes, middles and ends equal the plain loop") {
  using namespace toy;
  const std::vector<std::vector<model::ParamId>> frozen = {
      {kTower},                                                 // prefix
      {kTower, kEmbedding, kLayer1In, kLayer1Out, kLayer2},     // projector alone
      {kProjector},                                             // middle
      {kLayer1In, kLayer1Out},                                  // a whole block in the middle
      {kLayer1Out},                                             // half a block
      {kEmbedding},                                             // tied weight: first and last block
      {kTower, kProjector, kEmbedding, kLayer1In, kLayer1Out},  // one layer alone
      {kTower, kProjector, kEmbedding, kLayer1In, kLayer1Out, kLayer2},  // everything
  };
  for (const auto& ids : frozen) {
    for (int ranks : {1, 2}) expect_equal({ranks, 2, ids});
  }
}

TEST_CASE("executor: updates of three steps are the same on 1, 2 and 4 ranks") {
  const model::Model model = toy::make_model();
  const auto batches = make_batches(4);
  std::vector<std::vector<at::Tensor>> results;
  for (int ranks : {1, 2, 4}) {
    BuildOptions options{
        .micro_batches = 4 / ranks, .trainable = toy::all_but(model, {}), .data_ranks = ranks};
    options.buckets = toy::make_buckets(model, options.trainable, 1);
    dist::run_thread_ranks(ranks, {}, [&](dist::Group& group) {
      std::vector<model::Batch> mine;
      for (int m = 0; m < options.micro_batches; ++m)
        mine.push_back(batches[m * ranks + group.rank()]);
      toy::Rank rank(model, options, toy::make_weights(model, 2), mine, &group);
      rank.store.clip_limit = 0.5;
      for (int step = 0; step < 3; ++step) {
        rank.store.zero_gradients();
        CHECK(rank.step(toy::count_targets(batches)).updated);
      }
      if (group.rank() != 0) return;
      results.emplace_back();
      for (int p = 0; p < toy::kParams; ++p) results.back().push_back(rank.store.get(p).detach());
    });
  }
  for (size_t other = 1; other < results.size(); ++other) {
    for (int p = 0; p < toy::kParams; ++p) {
      CHECK((results[0][p] - results[other][p]).abs().max().item<double>() < kTolerance);
    }
  }
}
