#include "tools/bench_plan/buckets.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "lib/data/bucket_options.h"
#include "lib/data/bucket_report.h"
#include "lib/data/length_table.h"
#include "lib/data/synthetic_lengths.h"

namespace mm::bench {
namespace {

using namespace mm::data;

void compare(const std::string& buckets, const std::vector<image::Size>& sizes) {
  PictureOptions pictures;
  pictures.buckets = buckets;
  const image::BucketChooser chooser(buckets_of(pictures));
  PictureTable table;
  for (const image::Size& size : sizes) table.add(size, chooser);
  fmt::print("{} pictures in {}, batches of 4 x 1024 x 1024 pixels; pixels waited for, over real\n",
             sizes.size(), buckets);
  fmt::print("  {:>5} {:>8} {:>10} {:>8} {:>10} {:>12} {:>14} {:>8}\n", "ranks", "plan", "max/mean",
             "fillers", "one square", "random padded", "rank's buckets", "seconds");
  for (const int ranks : {2, 64, 1024}) {
    const BucketPlanReport report = report_bucket_plan(
        table.sizes,
        {.plan = {.seed = 1, .packs_per_step = 0, .batch_pixels = 4 << 20}, .ranks = ranks});
    const RankRow& row = report.rows.front();
    fmt::print("  {:>5} {:>8.4f} {:>10.4f} {:>6.2f} % {:>10.3f} {:>13.3f} {:>14.3f} {:>8.2f}\n",
               ranks, row.plan.time, row.plan.pixels.worst, 100 * row.filler_share,
               row.others.square.time, row.others.padded.time, row.others.sampled.time,
               row.seconds);
  }
}

}  // namespace

void compare_buckets(size_t pictures) {
  const std::vector<image::Size> sizes = web_picture_sizes(pictures);
  compare("sdxl", sizes);
  compare("pixart-256,pixart-512,pixart-1024", sizes);
}

}  // namespace mm::bench
