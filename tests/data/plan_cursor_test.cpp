#include "lib/data/plan_cursor.h"

#include <doctest/doctest.h>

#include <set>

#include "lib/base/error.h"

using namespace mm::data;

TEST_CASE("plan_cursor: steps run over epoch borders, each epoch whole, in any order of asking") {
  std::vector<SampleSize> sizes;
  for (int32_t i = 0; i < 50; ++i)
    sizes.push_back({.tokens = 1 + i % 13, .images = 1, .targets = 1});
  const PlanOptions options{.seed = 1, .sequence_length = 16, .packs_per_step = 3};
  PlanCursor cursor(sizes, options);
  std::vector<PlannedStep> steps;
  std::multiset<uint32_t> seen;
  for (uint64_t k = 0; steps.empty() || steps.back().position.epoch < 3; ++k) {
    steps.push_back(cursor.at(k));
    if (steps.back().position.epoch == 3) break;
    for (const Pack& pack : steps.back().packs)
      seen.insert(pack.samples.begin(), pack.samples.end());
  }
  for (uint32_t i = 0; i < 50; ++i) CHECK(seen.count(i) == 3);
  for (size_t k = steps.size(); k-- > 0;) {
    const PlannedStep again = cursor.at(k);
    CHECK(again.position.epoch == steps[k].position.epoch);
    CHECK(again.packs[0].samples == steps[k].packs[0].samples);
  }
}

TEST_CASE("plan_cursor: totals are those of all packs") {
  PlanCursor cursor(std::vector<SampleSize>(6, {.tokens = 5, .images = 2, .targets = 3}),
                    {.sequence_length = 10, .packs_per_step = 8});
  const PlannedStep step = cursor.at(0);
  CHECK(step.tokens == 30);
  CHECK(step.images == 12);
  CHECK(step.targets == 18);
  CHECK(cursor.steps_in_epoch() == 1);
}

TEST_CASE("plan_cursor: a set without samples is refused") {
  CHECK_THROWS_AS(PlanCursor({}, {.sequence_length = 8}), mm::DataError);
}
