#include "lib/data/plan_report.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <vector>

#include "lib/data/epoch_planner.h"
#include "lib/data/synthetic_lengths.h"
#include "tests/data/length_sets.h"

using namespace mm::data;
using namespace mm::data::test;

TEST_CASE("plan_report: by hand") {
  // Four samples of 6 tokens in rows of 10: one a pack, 40 % padding, 2 steps of 2 packs.
  const std::vector<SampleSize> sizes(4, {.tokens = 6, .images = 1, .targets = 2});
  const PlanReport report = report_plan(sizes, {.sequence_length = 10, .packs_per_step = 2}, 0, 2);
  CHECK(report.packs == 4);
  CHECK(report.packs_lower_bound == 4);  // each is more than half a pack
  CHECK(report.bound_gap == 0);
  CHECK(report.bound_proof == "pairs");
  CHECK(report.rank_cost.worst == 1);
  CHECK(report.distinct_pack_lengths == 1);
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

TEST_CASE("plan_report: text by hand") {
  std::vector<SampleSize> sizes(6, {.tokens = 5, .images = 1, .targets = 2});
  sizes[2].tokens = 11;
  const PlanOptions options{
      .sequence_length = 10, .packs_per_step = 2, .oversize = Oversize::kDrop};
  const PlanReport report = report_plan(sizes, options, 0, 2);
  CHECK(
      to_text(report, options) ==
      "epoch 0: 5 samples in 3 packs of 10 tokens (1.67 a pack), 2 steps of 2 packs, the last of "
      "1\n"
      "padding 16.67 % by best_fit packing; no packing goes below 16.67 % (3 packs, by sum): 0.00 "
      "% more packs than that\n"
      "1 dropped, 0 repeated, 2 pack lengths\n"
      "2 ranks, 1 micro-batches a rank, 1 without a pack; max / mean over ranks:\n"
      "                 mean      p99    worst\n"
      "  cost         1.0000   1.0000   1.0000\n"
      "  tokens       1.0000   1.0000   1.0000\n"
      "  attention    1.0000   1.0000   1.0000\n"
      "  images       1.0000   1.0000   1.0000\n"
      "costliest step / mean step 1.0000; costliest pack 1.2000 of the mean: 2 samples, 10 tokens, "
      "2 images, in step 0\n"
      "shuffle quality " +
          fmt::format(
              "{:.3f} (lengths within a step 1.000, distance from the index's order {:.3f}; "
              "1 is a uniform shuffle)\nplan {}\n",
              report.shuffle.figure(), report.shuffle.distance, report.plan_hash));
}

namespace {

/// The measured figures of the issue, on 64 ranks.
void check_balance(const std::vector<SampleSize>& sizes, const PlanOptions& options, double mean,
                   double worst) {
  const EpochPlanner planner(sizes, options);
  const PlanTable table = planner.plan(0);
  const PlanReport report = measure_plan(sizes, table.view(), options, 64);
  CAPTURE(report.rank_cost.mean);
  CAPTURE(report.rank_cost.p99);
  CAPTURE(report.rank_cost.worst);
  CAPTURE(report.packs);
  CHECK(report.rank_cost.mean <= mean);
  CHECK(report.rank_cost.worst <= worst);
  CHECK(report.shuffle.figure() >= 0.5);
  MESSAGE(options.sequence_length, " tokens, ", options.packs_per_step, " packs: cost mean ",
          report.rank_cost.mean, " p99 ", report.rank_cost.p99, " worst ", report.rank_cost.worst,
          ", shuffle ", report.shuffle.within_steps);
}

}  // namespace

TEST_CASE("steps over 64 ranks: within 1.01 with one pack a rank, 1.003 with four") {
  for (const double image_cost : {0.0, 9.0}) {
    for (const int per_rank : {1, 4}) {
      CAPTURE(image_cost);
      PlanOptions options{.seed = 1,
                          .sequence_length = 4096,
                          .max_images = 15,
                          .packs_per_step = 64 * per_rank,
                          .packing = Packing::kSearch,  // what tight takes for these
                          .image_cost = image_cost};
      const double mean = per_rank == 1 ? 1.01 : 1.003;
      check_balance(internvl_lengths(), options, mean, 1.01);
      options.max_images = 0;
      options.packing = Packing::kBestFit;
      check_balance(llava_lengths(40'000), options, mean, 1.01);
      options.sequence_length = 16'384;
      check_balance(any_res_lengths(40'000), options, mean, 1.01);
    }
  }
}
