#include "lib/data/bucket_planner.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "lib/base/error.h"
#include "lib/data/epoch_planner.h"
#include "lib/data/plan_cursor.h"
#include "lib/data/plan_file.h"
#include "tests/data/bucket_sets.h"
#include "tests/data/tiny_dataset.h"

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

TEST_CASE("bucket plan: every id once an epoch for world sizes 1 to 8, 12 and 64, equal steps") {
  const auto sizes =
      pictures_of({{{64, 64}, 501}, {{32, 128}, 333}, {{96, 64}, 78}, {{16, 16}, 999}});
  for (const int32_t per_step : {1, 5, 12, 64}) {
    PlanCursor cursor(sizes, options_of(6 * 64 * 64, per_step));
    const uint64_t steps = cursor.steps_in_epoch();
    for (const int world : {1, 2, 3, 4, 5, 6, 7, 8, 12, 64}) {
      std::vector<std::multiset<uint32_t>> seen(2);
      std::vector<size_t> ran(static_cast<size_t>(world), 0);
      for (uint64_t s = 0; s < 2 * steps; ++s) {
        const PlannedStep step = cursor.at(s);
        const auto dealt = deal_step(step.packs, world);
        const int each = micro_batches_per_rank(step.packs.size(), world);
        for (size_t r = 0; r < dealt.size(); ++r) {
          CHECK(dealt[r].size() <= static_cast<size_t>(each));
          ran[r] += static_cast<size_t>(each);
          for (const uint32_t p : dealt[r])
            seen[step.position.epoch].insert(step.packs[p].samples.begin(),
                                             step.packs[p].samples.end());
        }
      }
      for (const auto& ids : seen) {
        CHECK(ids.size() == sizes.size());
        CHECK(std::set<uint32_t>(ids.begin(), ids.end()).size() == sizes.size());
      }
      CHECK(std::ranges::all_of(ran, [&](size_t n) { return n == ran[0]; }));
    }
  }
}

TEST_CASE("bucket plan: written, mapped and built are one plan; a changed option is another file") {
  const test::TempDir dir;
  const auto sizes = pictures_of({{{64, 64}, 101}, {{32, 128}, 33}, {{96, 64}, 7}});
  const PlanOptions options = options_of(6 * 64 * 64, 8);
  const EpochPlanner planner(sizes, options);
  const EpochSteps written(planner, 2, dir.path()), mapped(planner, 2, dir.path());
  CHECK(mapped.mapped());
  CHECK(hash_plan(mapped.view()) == hash_plan(planner.plan(2).view()));
  CHECK(hash_plan(written.view()) == hash_plan(mapped.view()));
  PlanOptions other = options;
  other.leftovers = Leftovers::kDrop;
  CHECK(plan_file_name(identity_of(sizes, options, 2)) !=
        plan_file_name(identity_of(sizes, other, 2)));
  // A plan whose step begins with fillers alone has no shape for them.
  PlanTable bad = planner.plan(2);
  bad.rows.insert(bad.rows.end(), bad.dropped.begin(), bad.dropped.end());
  PlanTable empty_first;
  empty_first.end_filled_pack(3);
  empty_first.rows = bad.rows;
  empty_first.end_filled_pack(0);
  empty_first.end_step();
  write_plan(dir / "bad.mmp", empty_first.view(), identity_of(sizes, options, 2));
  CHECK_THROWS_WITH_AS(PlanFile(dir / "bad.mmp"), doctest::Contains("begins with fillers alone"),
                       mm::DataError);
}
