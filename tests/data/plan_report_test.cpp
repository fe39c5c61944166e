#include "lib/data/plan_report.h"

#include <doctest/doctest.h>

#include <vector>

using namespace mm::data;

TEST_CASE("plan_report: by hand") {
  // Four samples of 6 tokens in rows of 10: one a pack, 40 % padding, 2 steps of 2 packs.
  const std::vector<SampleSize> sizes(4, {.tokens = 6, .images = 1, .targets = 2});
  const PlanReport report = report_plan(sizes, {.sequence_length = 10, .packs_per_step = 2}, 0, 2);
  CHECK(report.packs == 4);
  CHECK(report.packs_lower_bound == 3);
  CHECK(report.padding == doctest::Approx(0.4));
  CHECK(report.steps == 2);
  CHECK(report.micro_batches_per_rank == 1);
  CHECK(report.rank_tokens.worst == 1);
  CHECK(report.step_cost_worst == 1);
  CHECK(report.images == 4);
  CHECK(report.targets == 8);
}

TEST_CASE("plan_report: a rank without work counts in the balance") {
  const std::vector<SampleSize> sizes(1, {.tokens = 6, .images = 0, .targets = 2});
  const PlanReport report = report_plan(sizes, {.sequence_length = 10, .packs_per_step = 1}, 0, 4);
  CHECK(report.rank_tokens.worst == 4);
  CHECK(report.rank_images.worst == 1);
  CHECK(to_json(report)["schema"] == 1);
  CHECK(to_json(report)["rank_tokens"]["worst"] == 4);
}
