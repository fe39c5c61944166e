#include "lib/data/bucket_planner.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "lib/base/error.h"
#include "lib/data/epoch_planner.h"
#include "tests/data/bucket_sets.h"

using namespace mm::data;
using test::pictures_of;
using test::three_buckets;

namespace {

constexpr int64_t kFour = 4 * 896 * 1152;
using BatchSizes = std::map<BucketShape, std::multiset<size_t, std::greater<>>>;

/// Pictures of the batches by bucket, most first; checks that a batch has one bucket.
BatchSizes batch_sizes(const PlanTable& plan, const std::vector<SampleSize>& sizes) {
  BatchSizes found;
  for (uint64_t p = 0; p < plan.view().packs(); ++p) {
    const auto batch = plan.view().pack(p);
    for (const uint32_t row : batch) CHECK(sizes[row].bucket == sizes[batch[0]].bucket);
    found[sizes[batch[0]].bucket].insert(batch.size());
  }
  return found;
}

PlanOptions options_of(int64_t batch_pixels, int32_t per_step) {
  return {.seed = 3,
          .packs_per_step = per_step,
          .packing = Packing::kBuckets,
          .batch_pixels = batch_pixels};
}

}  // namespace

TEST_CASE("C22: no bucket is lost; short batches are kept, every picture once an epoch") {
  const auto sizes = pictures_of(three_buckets());
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    const PlanTable plan = plan_epoch_table(sizes, options_of(kFour, 1), epoch);
    const BatchSizes batches = batch_sizes(plan, sizes);
    CHECK(batches.at({896, 1152}) == std::multiset<size_t, std::greater<>>{4, 4, 4, 1});
    CHECK(batches.at({1152, 896}) == std::multiset<size_t, std::greater<>>{4, 3});
    CHECK(batches.at({768, 1344}) == std::multiset<size_t, std::greater<>>{1});
    CHECK(std::set<uint32_t>(plan.rows.begin(), plan.rows.end()).size() == 21);
    CHECK(plan.dropped.empty());
    CHECK(std::ranges::count(plan.fillers, 0) == 7);
  }
}

TEST_CASE("C22: short batches are dropped on request, their pictures named") {
  const auto sizes = pictures_of(three_buckets());
  PlanOptions options = options_of(kFour, 1);
  options.leftovers = Leftovers::kDrop;
  const PlanTable plan = plan_epoch_table(sizes, options, 0);
  const BatchSizes batches = batch_sizes(plan, sizes);
  CHECK(batches.at({896, 1152}) == std::multiset<size_t, std::greater<>>{4, 4, 4});
  CHECK(batches.at({1152, 896}) == std::multiset<size_t, std::greater<>>{4});
  CHECK(!batches.contains({768, 1344}));
  CHECK(plan.dropped.size() == 5);
  CHECK(plan.dropped.back() == 20);
}

TEST_CASE("C22: an epoch without a full step is refused when leftovers are dropped") {
  const auto sizes = pictures_of(three_buckets());
  PlanOptions options = options_of(14 * kFour / 4, 1);
  CHECK(plan_epoch_table(sizes, options, 0).view().steps() == 3);
  options.leftovers = Leftovers::kDrop;
  CHECK_THROWS_WITH_AS(plan_epoch_table(sizes, options, 0), doctest::Contains("no step"),
                       mm::DataError);
}

TEST_CASE("C24: all ranks run equal steps, each picture counts once, filler is counted") {
  const auto sizes = pictures_of(three_buckets());
  for (const int ranks : {2, 4}) {
    const EpochPlan plan = plan_epoch(sizes, options_of(kFour, ranks), 0);
    CHECK(plan.steps.size() == (ranks == 2 ? 4 : 2));
    std::multiset<uint32_t> seen;
    int64_t fillers = 0;
    for (const std::vector<Pack>& step : plan.steps) {
      CHECK(micro_batches_per_rank(step.size(), ranks) == 1);
      CHECK(step.size() == static_cast<size_t>(ranks));
      for (const Pack& pack : step) {
        CHECK(pack.pixels() == step[0].pixels());
        CHECK(pack.targets == static_cast<int64_t>(pack.samples.size()));
        seen.insert(pack.samples.begin(), pack.samples.end());
        fillers += pack.fillers;
      }
    }
    CHECK(fillers == (ranks == 2 ? 1 : 3));
    CHECK(seen.size() == 21);
    CHECK(std::set<uint32_t>(seen.begin(), seen.end()).size() == 21);
  }
}

TEST_CASE("bucket plan: what cannot be is refused") {
  const std::vector<SampleSize> sizes = pictures_of(three_buckets());
  CHECK_THROWS_AS(plan_epoch_table(sizes, options_of(0, 1), 0), mm::UsageError);
  CHECK_THROWS_AS(plan_epoch_table(sizes, options_of(kFour, 0), 0), mm::UsageError);
  const std::vector<SampleSize> texts = {{.tokens = 5, .targets = 3}};
  CHECK_THROWS_WITH_AS(plan_epoch_table(texts, options_of(kFour, 1), 0),
                       doctest::Contains("in no bucket"), mm::DataError);
  CHECK_THROWS_WITH_AS(plan_epoch_table(sizes, {.sequence_length = 9}, 0),
                       doctest::Contains("planned by pixels"), mm::UsageError);
}

TEST_CASE("bucket plan: an epoch is a draw of its own, and the same draw each time") {
  const auto sizes = pictures_of({{{64, 64}, 400}, {{32, 128}, 300}, {{96, 64}, 77}});
  const EpochPlanner planner(sizes, options_of(8 * 64 * 64, 4));
  const PlanTable first = planner.plan(0), again = planner.plan(0), second = planner.plan(1);
  CHECK(first.rows == again.rows);
  CHECK(first.fillers == again.fillers);
  CHECK(first.rows != second.rows);
  CHECK(first.step_begin == second.step_begin);
  // Buckets of one level meet in a step.
  std::set<BucketShape> met;
  for (const Pack& pack : packs_of_step(sizes, first.view(), 0)) met.insert(pack.bucket);
  for (const Pack& pack : packs_of_step(sizes, first.view(), 1)) met.insert(pack.bucket);
  CHECK(met.size() >= 2);
}
