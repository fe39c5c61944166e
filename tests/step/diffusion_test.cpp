#include "lib/model/diffusion.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/dist/thread_group.h"
#include "lib/step/check.h"
#include "tests/model/tiny_diffusion.h"
#include "tests/model/tiny_llava.h"
#include "tests/step/toy_trainer.h"

using namespace mm;
using namespace mm::step;
using namespace mm::model::test;

namespace {

constexpr double kTolerance = 1e-9;

// Pictures of three sizes in micro-batches of 0 to 3, the same whatever ranks there are.
std::vector<model::Batch> make_batches(const model::DiffusionConfig& config) {
  const TinyPictures shapes[] = {{.ids = {0, 1, 2}},
                                 {.ids = {3}, .height = 6, .width = 8},
                                 {.ids = {}, .null = true},
                                 {.ids = {4, 5}, .height = 4, .width = 4},
                                 {.ids = {6, 7}},
                                 {.ids = {}},
                                 {.ids = {8}, .height = 4, .width = 4},
                                 {.ids = {9, 10}, .height = 6, .width = 8}};
  std::vector<model::Batch> batches;
  for (const TinyPictures& shape : shapes) {
    batches.push_back(tiny_pictures(config, shape));
    batches.back().targets = at::zeros({static_cast<int64_t>(shape.ids.size())}, at::kLong);
  }
  return batches;
}

std::vector<at::Tensor> make_weights(const model::Model& model) {
  const model::SimpleParams params = lively_params(model, 3);
  std::vector<at::Tensor> weights;
  for (size_t p = 0; p < model.params.size(); ++p)
    weights.push_back(params.get(static_cast<int>(p)).detach());
  return weights;
}

struct Case {
  int ranks = 1;
  Recompute recompute;
  bool frozen_text = false;
};

void expect_equal(const model::DiffusionConfig& config, const Case& c) {
  CAPTURE(model::diffusion_family_name(config.family));
  CAPTURE(c.ranks);
  const model::Model model = model::build_diffusion(config, tiny_objective(config));
  const auto weights = make_weights(model);
  const auto batches = make_batches(config);
  const double targets = toy::count_targets(batches);
  CHECK(targets == 11);
  BuildOptions options{.micro_batches = static_cast<int>(batches.size()) / c.ranks,
                       .trainable = model::params_in_use(model),
                       .data_ranks = c.ranks,
                       .recompute = c.recompute};
  for (size_t p = 0; c.frozen_text && p < model.params.size(); ++p) {
    if (model.params[p].part == model::Part::kTextEncoder) options.trainable[p] = false;
  }
  options.buckets = toy::make_buckets(model, options.trainable, 5);
  const toy::Reference reference = toy::plain_loop(model, weights, options.trainable, batches);
  std::vector<double> differences(c.ranks), losses(c.ranks);
  dist::run_thread_ranks(c.ranks, {}, [&](dist::Group& group) {
    const int r = group.rank();
    std::vector<model::Batch> mine;
    for (int m = 0; m < options.micro_batches; ++m) mine.push_back(batches[m * c.ranks + r]);
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

TEST_CASE("law 1: 1, 2 and 4 ranks take the same step of every diffusion family, sizes mixed") {
  for (const model::DiffusionConfig& config : tiny_families()) {
    for (const int ranks : {1, 2, 4}) expect_equal(config, {.ranks = ranks});
  }
}

TEST_CASE("recompute changes no gradient of a diffusion model") {
  for (const model::DiffusionConfig& config : tiny_families())
    expect_equal(config, {.recompute = {.kind = Recompute::Kind::kBlock}});
}

TEST_CASE("a frozen text encoder in front changes no other gradient") {
  expect_equal(tiny_texted(), {.ranks = 2, .frozen_text = true});
}
