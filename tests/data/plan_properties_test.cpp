#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "lib/base/hash.h"
#include "lib/data/epoch_plan.h"
#include "lib/data/plan_cursor.h"
#include "lib/data/step_balance.h"
#include "tests/data/length_sets.h"

using namespace mm::data;
using namespace mm::data::test;

namespace {

constexpr int kWorlds[] = {1, 2, 3, 4, 5, 6, 7, 8, 12, 64};

std::vector<PlanOptions> all_options(uint64_t seed) {
  std::vector<PlanOptions> all;
  for (const std::string& name : packing_names()) {
    if (name == name_of(Packing::kBuckets)) continue;  // by pixels: bucket_planner_test.cpp
    const mm::Philox random(seed, name);
    all.push_back({.seed = seed,
                   .sequence_length = 256,
                   .max_images = random.below(0, 2) == 0 ? 0 : 5,
                   .packs_per_step = 1 + static_cast<int32_t>(random.below(1, 20)),
                   .packing = *packing_from_name(name),
                   .image_cost = 3});
  }
  return all;
}

/// The rows of a step, rank by rank as `world` ranks would read them.
std::vector<uint32_t> rows_read(const PlannedStep& step, int world) {
  std::vector<uint32_t> rows;
  for (const auto& mine : deal_step(step.packs, world)) {
    for (const uint32_t pack : mine) {
      rows.insert(rows.end(), step.packs[pack].samples.begin(), step.packs[pack].samples.end());
    }
  }
  return rows;
}

std::string order_of(const PlannedStep& step) {
  std::string order;
  for (const Pack& pack : step.packs) {
    for (const uint32_t row : pack.samples) order += std::to_string(row) + ",";
    order += "|";
  }
  return order;
}

}  // namespace

TEST_CASE("plans: every id once an epoch for world sizes 1 to 8, 12 and 64") {
  for (uint64_t seed = 0; seed < 3; ++seed) {
    const auto sizes = random_sizes(1 + seed * 120, 200, seed);
    for (const PlanOptions& options : all_options(seed)) {
      PlanCursor cursor(sizes, options);
      const uint64_t steps = cursor.steps_in_epoch();
      for (const int world : kWorlds) {
        std::vector<uint32_t> rows;
        for (uint64_t k = 0; k < steps; ++k) {
          const auto step = rows_read(cursor.at(k), world);
          rows.insert(rows.end(), step.begin(), step.end());
        }
        std::sort(rows.begin(), rows.end());
        REQUIRE(rows.size() == sizes.size());
        CHECK(std::adjacent_find(rows.begin(), rows.end()) == rows.end());
      }
    }
  }
}

TEST_CASE("C25: a stream resumed at any step, over epoch ends, equals the one that never stopped") {
  const auto sizes = random_sizes(120, 200, 5);
  for (const PlanOptions& options : all_options(5)) {
    PlanCursor whole(sizes, options);
    const uint64_t steps = 2 * whole.steps_in_epoch() + 3;
    std::vector<std::string> orders;
    for (uint64_t k = 0; k < steps; ++k) orders.push_back(order_of(whole.at(k)));
    for (uint64_t stop = 0; stop < steps; stop += 3) {
      PlanCursor resumed(sizes, options);
      std::string all, expected;
      for (uint64_t k = stop; k < steps; ++k) {
        all += order_of(resumed.at(k));
        expected += orders[k];
      }
      CHECK(mm::xxh3_128_hex(all) == mm::xxh3_128_hex(expected));
    }
  }
}

TEST_CASE("C26: resumed at the end of an epoch the next begins, whole and in its own order") {
  const std::vector<SampleSize> sizes(10, {.tokens = 5});
  const PlanOptions options{.seed = 1, .sequence_length = 5, .packs_per_step = 1};
  PlanCursor cursor(sizes, options);
  REQUIRE(cursor.steps_in_epoch() == 10);
  CHECK(PlanCursor(sizes, options).at(10).position.epoch == 1);
  CHECK(PlanCursor(sizes, options).at(10).position.step_in_epoch == 0);
  std::set<uint32_t> third;
  for (uint64_t k = 20; k < 30; ++k) third.insert(cursor.at(k).packs[0].samples[0]);
  CHECK(third.size() == 10);
}

TEST_CASE("C27: stopped at 4 ranks and continued at 2, 8 and 1, no sample is lost or doubled") {
  const auto sizes = random_sizes(64, 200, 7);
  for (const PlanOptions& options : all_options(7)) {
    PlanCursor whole(sizes, options);
    const uint64_t steps = whole.steps_in_epoch(), stop = steps / 3;
    for (const int world : {2, 8, 1}) {
      std::vector<uint32_t> rows;
      for (uint64_t k = 0; k < steps; ++k) {
        const auto step = rows_read(whole.at(k), k < stop ? 4 : world);
        const auto same = rows_read(whole.at(k), 4);
        CHECK(std::set<uint32_t>(step.begin(), step.end()) ==
              std::set<uint32_t>(same.begin(), same.end()));
        rows.insert(rows.end(), step.begin(), step.end());
      }
      std::sort(rows.begin(), rows.end());
      REQUIRE(rows.size() == 64);
      CHECK(std::adjacent_find(rows.begin(), rows.end()) == rows.end());
    }
  }
}

TEST_CASE("C29: tight packs draw other samples and another order each epoch") {
  // As many as show it; the search takes 16 times as long for 150.
  const auto sizes = random_sizes(64, 200, 2);
  for (const PlanOptions& options : all_options(2)) {
    std::set<std::vector<uint32_t>> orders;
    for (uint64_t epoch = 0; epoch < 3; ++epoch)
      orders.insert(plan_epoch_table(sizes, options, epoch).rows);
    PlanOptions other = options;
    other.seed = 99;
    orders.insert(plan_epoch_table(sizes, other, 0).rows);
    CHECK(orders.size() == 4);
    CHECK(plan_epoch_table(sizes, options, 1).rows == plan_epoch_table(sizes, options, 1).rows);
  }
}

TEST_CASE("plans: samples that fit no pack are refused by name or dropped by request") {
  auto sizes = random_sizes(100, 100, 3);
  sizes[17].tokens = 300;
  sizes[40].images = 9;
  PlanOptions options{.sequence_length = 256, .max_images = 4, .packs_per_step = 4};
  CHECK_THROWS_AS(plan_epoch_table(sizes, options, 0), mm::DataError);
  options.oversize = Oversize::kDrop;
  for (const std::string& name : packing_names()) {
    if (name == name_of(Packing::kBuckets)) continue;  // by pixels: bucket_planner_test.cpp
    options.packing = *packing_from_name(name);
    const PlanTable plan = plan_epoch_table(sizes, options, 0);
    CHECK(plan.dropped == std::vector<uint32_t>{17, 40});
    CHECK(plan.rows.size() == 98);
  }
  options.max_attention_pairs = 10;
  CHECK_THROWS_AS(PlanCursor(std::vector<SampleSize>(3, {.tokens = 5}), options), mm::DataError);
}

TEST_CASE("costliest pack: it is the dearest of the epoch and stands in no order") {
  const auto sizes = random_sizes(300, 200, 4);
  const PlanOptions options{.seed = 4,
                            .sequence_length = 256,
                            .packs_per_step = 8,
                            .packing = Packing::kBestFit,
                            .image_cost = 5};
  PlanCursor cursor(sizes, options);
  const PlannedStep first = cursor.costliest();
  REQUIRE(first.packs.size() == 1);
  CHECK(first.tokens == first.packs[0].tokens);
  for (uint64_t k = 0; k < cursor.steps_in_epoch(); ++k) {
    for (const Pack& pack : cursor.at(k).packs) CHECK(pack.cost <= first.packs[0].cost);
  }
  CHECK(!costliest_pack({}, PlanTable().view()));
}
