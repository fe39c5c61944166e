#include "lib/data/epoch_plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "lib/base/error.h"
#include "lib/base/random.h"
#include "lib/data/step_balance.h"

using namespace mm::data;

namespace {

std::vector<SampleSize> random_sizes(size_t count, int32_t longest, uint64_t seed) {
  const mm::Philox random(seed, "test sizes");
  std::vector<SampleSize> sizes(count);
  for (size_t i = 0; i < count; ++i) {
    sizes[i].tokens = 1 + static_cast<int32_t>(random.below(3 * i, static_cast<uint64_t>(longest)));
    sizes[i].images = static_cast<int32_t>(random.below(3 * i + 1, 3));
    sizes[i].targets = sizes[i].tokens / 2;
  }
  return sizes;
}

std::vector<uint32_t> ids_of(const EpochPlan& plan) {
  std::vector<uint32_t> ids;
  for (const auto& step : plan.steps) {
    for (const Pack& pack : step) ids.insert(ids.end(), pack.samples.begin(), pack.samples.end());
  }
  return ids;
}

bool is_permutation(std::vector<uint32_t> ids, size_t count) {
  std::sort(ids.begin(), ids.end());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] != i) return false;
  }
  return ids.size() == count;
}

}  // namespace

TEST_CASE("plan_epoch: every sample stands in exactly one pack and no pack passes its caps") {
  for (const size_t count : {0u, 1u, 2u, 7u, 100u, 9000u}) {
    for (const std::string& name : packing_names()) {
      if (name == name_of(Packing::kBuckets)) continue;  // by pixels: bucket_planner_test.cpp
      const Packing packing = *packing_from_name(name);
      CAPTURE(name);
      const auto sizes = random_sizes(count, 200, count);
      const PlanOptions options{.seed = 5,
                                .sequence_length = 256,
                                .max_images = 4,
                                .packs_per_step = 8,
                                .packing = packing};
      const auto plan = plan_epoch(sizes, options, 3);
      CHECK(is_permutation(ids_of(plan), count));
      for (size_t s = 0; s < plan.steps.size(); ++s) {
        const auto& step = plan.steps[s];
        if (s + 1 < plan.steps.size()) CHECK(step.size() == 8);
        CHECK(!step.empty());
        for (const Pack& p : step) {
          CHECK(p.tokens <= 256);
          CHECK(p.images <= 4);
          int64_t tokens = 0, images = 0, targets = 0;
          double pairs = 0;
          for (const uint32_t row : p.samples) {
            tokens += sizes[row].tokens;
            images += sizes[row].images;
            targets += sizes[row].targets;
            pairs += sizes[row].tokens * (sizes[row].tokens + 1.0) / 2;
          }
          CHECK(tokens == p.tokens);
          CHECK(images == p.images);
          CHECK(targets == p.targets);
          CHECK(pairs == p.attention_pairs);
          CHECK(p.cost == pack_cost(p));
          if (packing == Packing::kNone) CHECK(p.samples.size() == 1);
        }
      }
    }
  }
}

TEST_CASE("C29: each epoch has its own order, the same for the same seed, another for another") {
  const std::vector<SampleSize> sizes(10, {.tokens = 5, .images = 1, .targets = 2});
  PlanOptions options{
      .seed = 1, .sequence_length = 8, .packs_per_step = 1, .packing = Packing::kNone};
  std::set<std::vector<uint32_t>> orders;
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    const auto ids = ids_of(plan_epoch(sizes, options, epoch));
    CHECK(is_permutation(ids, 10));
    CHECK(ids == ids_of(plan_epoch(sizes, options, epoch)));
    orders.insert(ids);
  }
  options.seed = 2;
  orders.insert(ids_of(plan_epoch(sizes, options, 0)));
  CHECK(orders.size() == 4);
}

TEST_CASE("C29: packed epochs differ too") {
  const auto sizes = random_sizes(300, 60, 4);
  const PlanOptions options{.seed = 1, .sequence_length = 128, .packs_per_step = 4};
  CHECK(ids_of(plan_epoch(sizes, options, 0)) != ids_of(plan_epoch(sizes, options, 1)));
}

TEST_CASE("plan_epoch: steps of shuffled packs cost nearly the same") {
  const auto sizes = random_sizes(20000, 1000, 9);
  const PlanOptions options{
      .seed = 2, .sequence_length = 2048, .packs_per_step = 16, .packing = Packing::kShuffled};
  const auto plan = plan_epoch(sizes, options, 0);
  double worst = 0, total = 0;
  for (size_t s = 0; s + 1 < plan.steps.size(); ++s) {
    double cost = 0;
    for (const Pack& pack : plan.steps[s]) cost += pack.cost;
    worst = std::max(worst, cost);
    total += cost;
  }
  CHECK(worst <= 1.01 * total / static_cast<double>(plan.steps.size() - 1));
}

TEST_CASE("plan_epoch: a sample that fits no pack is named") {
  std::vector<SampleSize> sizes(5, {.tokens = 10});
  sizes[3].tokens = 11;
  const PlanOptions options{.sequence_length = 10};
  CHECK_THROWS_WITH_AS(plan_epoch(sizes, options, 0),
                       "sample 3 has 11 tokens, the sequence length is 10; raise it or pack the "
                       "data set again with a smaller --max-length",
                       mm::DataError);
  sizes[3] = {.tokens = 10, .images = 3};
  CHECK_THROWS_AS(plan_epoch(sizes, {.sequence_length = 10, .max_images = 2}, 0), mm::DataError);
  sizes[3] = {.tokens = -1};
  CHECK_THROWS_AS(plan_epoch(sizes, options, 0), mm::DataError);
}

TEST_CASE("plan_epoch: impossible options are usage errors") {
  CHECK_THROWS_AS(plan_epoch({}, {.sequence_length = 0}, 0), mm::UsageError);
  CHECK_THROWS_AS(plan_epoch({}, {.sequence_length = 1, .packs_per_step = 0}, 0), mm::UsageError);
  CHECK_THROWS_AS(plan_epoch({}, {.sequence_length = 1, .max_images = -1}, 0), mm::UsageError);
}

TEST_CASE(
    "deal_step: every pack goes to one rank, none runs more than its share of micro-batches") {
  const auto sizes = random_sizes(64, 100, 1);
  const PlanOptions options{
      .sequence_length = 100, .packs_per_step = 13, .packing = Packing::kNone};
  const auto plan = plan_epoch(sizes, options, 0);
  for (const auto& step : plan.steps) {
    for (const int ranks : {1, 2, 3, 4, 8, 12, 64}) {
      const auto dealt = deal_step(step, ranks);
      REQUIRE(dealt.size() == static_cast<size_t>(ranks));
      std::vector<uint32_t> all;
      for (const auto& mine : dealt) {
        CHECK(mine.size() <= static_cast<size_t>(micro_batches_per_rank(step.size(), ranks)));
        CHECK(std::is_sorted(mine.begin(), mine.end()));
        all.insert(all.end(), mine.begin(), mine.end());
      }
      CHECK(is_permutation(all, step.size()));
    }
  }
}

TEST_CASE("micro_batches_per_rank: rounds up") {
  CHECK(micro_batches_per_rank(0, 4) == 0);
  CHECK(micro_batches_per_rank(1, 4) == 1);
  CHECK(micro_batches_per_rank(8, 4) == 2);
  CHECK(micro_batches_per_rank(9, 4) == 3);
}
