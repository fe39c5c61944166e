#include <fmt/format.h>

#include <string>

#include "lib/data/bucket_options.h"
#include "lib/data/length_table.h"
#include "lib/data/synthetic_lengths.h"
#include "lib/model/cpu_allocator.h"
#include "tools/bench_buckets/epoch.h"
#include "tools/bench_dit/dit_options.h"
#include "tools/bench_llava/process_cost.h"
#include "tools/bench_main.h"

namespace {

using namespace mm;

struct Options {
  bench::DitShape shape{.heads = 4, .layers = 2};
  std::string sizes, buckets = "pixart-256,pixart-512", budget = "4x512x512";
  size_t pictures = 600, stride = 1;
  int ranks = 2;
};

data::PictureTable pictures_of(const Options& options) {
  data::PictureOptions pictures;
  pictures.buckets = options.buckets;
  const image::BucketChooser chooser(data::buckets_of(pictures));
  if (!options.sizes.empty()) return data::read_picture_sizes(options.sizes, chooser);
  data::PictureTable table;
  for (const image::Size& size : data::web_picture_sizes(options.pictures))
    table.add(size, chooser);
  return table;
}

void run_bench(const Options& options) {
  bench::start_tensors(1);
  model::install_cpu_allocator(int64_t{1} << 30);
  const data::PictureTable table = pictures_of(options);
  const data::PlanOptions plan{.seed = 1,
                               .packs_per_step = options.ranks,
                               .packing = data::Packing::kBuckets,
                               .batch_pixels = data::pixels_from_text(options.budget)};
  double real = 0;
  for (const data::SampleSize& size : table.sizes)
    real += static_cast<double>(size.bucket.pixels());
  fmt::print("{}\n{} pictures in {}, batches of {} pixels, {} ranks, DiT of {} x {} layers\n",
             bench::hardware(), table.sizes.size(), options.buckets, options.budget, options.ranks,
             options.shape.heads * 64, options.shape.layers);
  fmt::print("{:<26} {:>6} {:>9} {:>11} {:>14} {:>8} {:>22}\n", "way", "steps", "epoch s",
             "pictures/s", "pixels / real", "waiting", "slowest / mean, worst");
  for (const bench::Way& way : bench::ways_of(table.sizes, plan, options.ranks)) {
    const bench::EpochTime time = bench::train_epoch(way, options.shape, options.stride);
    fmt::print("{:<26} {:>6} {:>9.1f} {:>11.1f} {:>14.3f} {:>6.1f} % {:>22.2f}\n", way.name,
               way.steps.size(), time.wall_s, static_cast<double>(table.sizes.size()) / time.wall_s,
               time.pixels / real, 100 * time.waiting, time.worst_ratio);
  }
}

void declare_options(CLI::App& app, Options& options) {
  app.add_option("--sizes", options.sizes, "CSV of width and height; else web-like sizes");
  app.add_option("--pictures", options.pictures, "Web-like sizes")->capture_default_str();
  app.add_option("--buckets", options.buckets, "Presets and sizes of buckets")
      ->capture_default_str();
  app.add_option("--budget", options.budget, "Pixels of a batch")->capture_default_str();
  bench::add_number(app, "--ranks", options.ranks, "Ranks, a thread each", 1, 64);
  bench::add_number<size_t>(app, "--stride", options.stride, "Steps measured: every n-th", 1, 1000);
  bench::add_dit_shape(app, options.shape);
}

}  // namespace

int main(int argc, char** argv) {
  return bench::bench_main<Options>(
      {argc, argv, "bench_buckets",
       "Wall time of an epoch of a small DiT over pictures of many sizes, by four ways of making "
       "batches.\nExample: OMP_NUM_THREADS=1 bench_buckets --pictures 400 --ranks 2"},
      declare_options, run_bench);
}
