#include "lib/data/bucket_report.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "lib/base/env.h"
#include "lib/base/error.h"
#include "lib/data/bucket_dropped.h"
#include "lib/data/bucket_options.h"
#include "lib/data/length_table.h"
#include "lib/data/synthetic_lengths.h"
#include "tests/data/bucket_sets.h"

using namespace mm::data;
using namespace mm::data::test;

namespace {

std::vector<SampleSize> web_pictures(size_t count, const std::string& buckets) {
  PictureOptions pictures;
  pictures.buckets = buckets;
  const mm::image::BucketChooser chooser(buckets_of(pictures));
  PictureTable table;
  for (const mm::image::Size& size : web_picture_sizes(count)) table.add(size, chooser);
  return std::move(table.sizes);
}

BucketReportOptions four_of_1024(bool compare) {
  return {.plan = {.seed = 1, .packs_per_step = 0, .batch_pixels = 4 << 20}, .compare = compare};
}

}  // namespace

TEST_CASE("bucket plan: web-like sizes in three resolutions balance on 1 to 1,024 ranks") {
  const size_t pictures = mm::env::get("MM_LONG") ? 1'000'000 : 300'000;
  const auto sizes = web_pictures(pictures, "pixart-256,pixart-512,pixart-1024");
  const BucketPlanReport report = report_bucket_plan(sizes, four_of_1024(false));
  REQUIRE(report.rows.size() == 11);
  for (const RankRow& row : report.rows) {
    CAPTURE(row.ranks);
    CHECK(row.plan.pixels.worst <= kPixelBalance);
    CHECK(row.filler_share < 0.01);
    CHECK(row.plan.time < 1.02);
    CHECK(row.dropped == 0);
    CHECK(row.plan.repeated == 0);
  }
  CHECK(report.rows.back().ranks == 1024);
}

TEST_CASE(
    "bucket plan: one plan of 1,024 batches balances on every number of ranks that divides it") {
  const auto sizes = web_pictures(200'000, "sdxl");
  BucketReportOptions options = four_of_1024(false);
  options.plan.packs_per_step = 768;
  options.ranks = 12;
  const BucketPlanReport report = report_bucket_plan(sizes, options);
  CHECK(report.rows.back().ranks == 12);
  for (const RankRow& row : report.rows) {
    CAPTURE(row.ranks);
    CHECK(768 % row.ranks == 0);
    CHECK(row.plan.pixels.worst <= kPixelBalance);
    CHECK(row.plan.steps == report.rows.front().plan.steps);
  }
}

TEST_CASE("bucket plan: the real sizes of 785 stamps balance on 1 to 8 ranks") {
  PictureOptions pictures;
  pictures.bucket_area = "128x128,64x64";
  pictures.bucket_multiple = 16;
  const auto file = std::filesystem::path(MM_TEST_DATA) / "field/lengths/stamp_sizes.csv";
  const PictureTable table =
      read_picture_sizes(file, mm::image::BucketChooser(buckets_of(pictures)));
  REQUIRE(table.sizes.size() == 785);
  CHECK(table.enlarged > 0);
  for (int ranks = 1; ranks <= 8; ++ranks) {
    BucketReportOptions options;
    options.plan = {.seed = 2, .packs_per_step = 0, .batch_pixels = 8 * 128 * 128};
    options.ranks = ranks;
    const RankRow row = report_bucket_plan(table.sizes, options).rows.front();
    CAPTURE(ranks);
    CHECK(row.plan.pixels.worst <= kPixelBalance);
    CHECK(row.filler_share < 0.03);
    CHECK(row.plan.time < row.others.padded.time);
    CHECK(row.plan.time < row.others.square.time);
  }
}

TEST_CASE("bucket plan: other ways wait and pad more") {
  const auto sizes = web_pictures(60'000, "pixart-256,pixart-512,pixart-1024");
  BucketReportOptions options = four_of_1024(true);
  options.ranks = 64;
  const BucketPlanReport report = report_bucket_plan(sizes, options);
  const RankRow& row = report.rows.front();
  CHECK(row.plan.time < 1.05);
  CHECK(row.others.padded.time > 2);
  CHECK(row.others.sampled.time > 2);
  CHECK(row.others.square.time > 2);
  CHECK(row.others.sampled.pixels.mean > 1.5);
  CHECK(to_json(report)["rows"][0]["random_padded"]["time"] == row.others.padded.time);
  const std::string text = to_text(report);
  CHECK(text.find("other ways") != std::string::npos);
  CHECK(text.find("1024x1024") != std::string::npos);
}

TEST_CASE("bucket plan: one bucket on one rank costs exactly its pixels by any way") {
  const auto sizes = pictures_of({{{16, 16}, 64}});
  BucketReportOptions options{.plan = {.packs_per_step = 0, .batch_pixels = 4 * 256}, .ranks = 4};
  const RankRow row = report_bucket_plan(sizes, options).rows.front();
  for (const EpochCost* cost :
       {&row.plan, &row.others.padded, &row.others.sampled, &row.others.square}) {
    CHECK(cost->time == doctest::Approx(1));
    CHECK(cost->steps == 4);
    CHECK(cost->pixels.worst == 1);
  }
}

TEST_CASE("bucket plan: buckets over the budget are named, one picture a batch") {
  const auto sizes = pictures_of({{{16, 16}, 9}, {{32, 32}, 3}});
  BucketReportOptions options{.plan = {.packs_per_step = 2, .batch_pixels = 512}, .ranks = 2};
  const BucketPlanReport report = report_bucket_plan(sizes, options);
  REQUIRE(report.over_budget.size() == 1);
  CHECK(report.buckets[report.over_budget[0]].shape == BucketShape{32, 32});
  CHECK(to_text(report).find("one picture of 32x32 passes the budget") != std::string::npos);
}

TEST_CASE("dropped_pictures: named with bucket and reason") {
  const auto sizes = pictures_of(three_buckets());
  const PlanOptions options{.packs_per_step = 3,
                            .packing = Packing::kBuckets,
                            .batch_pixels = 4 * 896 * 1152,
                            .leftovers = Leftovers::kDrop};
  const PlanTable plan = plan_epoch_table(sizes, options, 0);
  const auto dropped = dropped_pictures(sizes, plan.view(), options);
  // 3 + 1 full batches: one waits for a step; 1, 3 and 1 pictures are short.
  CHECK(dropped.size() == 9);
  CHECK(std::ranges::count_if(dropped, [](const DroppedPicture& d) {
          return d.reason == "left over, as 4 pictures make a batch";
        }) == 5);
  CHECK(std::ranges::count_if(dropped, [](const DroppedPicture& d) {
          return d.reason == "left over, as 3 batches make a step";
        }) == 4);
}

TEST_CASE("pixels_from_text: numbers and products") {
  CHECK(pixels_from_text("4194304") == 4194304);
  CHECK(pixels_from_text("4x1024x1024") == 4194304);
  for (const char* bad :
       {"", "x", "4x", "-4", "4.5", "0", "4xa", "99999999999999999999", "1048576x1048576x2"})
    CHECK_THROWS_AS(pixels_from_text(bad), mm::UsageError);
}
