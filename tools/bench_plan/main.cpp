// Prints padding beside other loaders' rules, what plans cost at scale, and epochs of buckets
// beside other ways of batching. Nothing is asserted by time.
#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "lib/base/error.h"
#include "lib/data/epoch_planner.h"
#include "lib/data/length_table.h"
#include "lib/data/plan_report.h"
#include "lib/data/synthetic_lengths.h"
#include "tools/bench_plan/baselines.h"
#include "tools/bench_plan/buckets.h"

namespace {

using namespace mm::data;

struct Set {
  std::string name;
  std::vector<SampleSize> sizes;
  PackLimits limits;
};

double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

/// Processor time of all threads so far.
double cpu_s() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

double padding(const Set& set, uint64_t packs) {
  double tokens = 0;
  for (const SampleSize& size : set.sizes) tokens += size.tokens;
  return 100 * (1 - tokens / (static_cast<double>(packs) * set.limits.tokens));
}

void print_baseline(const Set& set, const char* name, const mm::bench::BaselineResult& result) {
  fmt::print(
      "  {:<26} {:8.2f} %  {:6.1f} % of packs over the image cap\n", name,
      padding(set, result.packs),
      100.0 * static_cast<double>(result.over_image_cap) / static_cast<double>(result.packs));
}

void print_plan(const Set& set, Packing packing, int packs_per_slot) {
  const PlanOptions options{.seed = 1,
                            .sequence_length = set.limits.tokens,
                            .max_images = set.limits.images,
                            .packs_per_step = 64 * packs_per_slot,
                            .packing = packing};
  const PlanReport r = report_plan(set.sizes, options, 0, 64);
  fmt::print(
      "  {:<9} {} a slot: {:8.2f} %  bound {:.2f} %  {:.2f} s  cost {:.4f} p99 {:.4f} worst {:.4f} "
      " "
      "images {:.3f}  shuffle {:.2f}\n",
      name_of(r.packing), packs_per_slot, 100 * r.padding, 100 * r.padding_lower_bound,
      r.plan_seconds, r.rank_cost.mean, r.rank_cost.p99, r.rank_cost.worst, r.rank_images.mean,
      r.shuffle.figure());
}

void compare(const Set& set) {
  fmt::print("{}: {} samples, {} tokens, {} images a pack, 64 slots\n", set.name, set.sizes.size(),
             set.limits.tokens, set.limits.images);
  print_baseline(set, "next fit", mm::bench::next_fit(set.sizes, set.limits));
  print_baseline(set, "greedy knapsack of 1,000",
                 mm::bench::greedy_knapsack(set.sizes, set.limits, 1000));
  print_baseline(set, "best-fit decreasing", mm::bench::best_fit_decreasing(set.sizes, set.limits));
  for (const Packing packing :
       {Packing::kGreedy, Packing::kBestFit, Packing::kExact, Packing::kSearch})
    print_plan(set, packing, 1);
  print_plan(set, Packing::kTight, 1);
  print_plan(set, Packing::kTight, 4);
}

void scale(uint64_t samples) {
  const auto sizes = any_res_lengths(samples);
  const auto begin = std::chrono::steady_clock::now();
  const double cpu_begin = cpu_s();
  const EpochPlanner planner(
      sizes, {.seed = 1, .sequence_length = 16'384, .max_images = 58, .packs_per_step = 512});
  const std::chrono::duration<double> patterns = std::chrono::steady_clock::now() - begin;
  const PlanTable table = planner.plan(0);
  const std::chrono::duration<double> all = std::chrono::steady_clock::now() - begin;
  fmt::print(
      "{} any-res samples at 16,384: {} packs by {}, {:.1f} s ({:.1f} s once for all "
      "epochs; {:.1f} s of processors), peak {:.0f} MiB\n",
      samples, table.view().packs(), name_of(planner.packing()), all.count(), patterns.count(),
      cpu_s() - cpu_begin, peak_mib());
}

int run(int argc, char** argv) {
  std::string lengths;
  uint64_t samples = 10'000'000;
  uint64_t pictures = 1'000'000;
  bool only_scale = false, only_buckets = false;
  CLI::App app("Padding, balance, seconds and memory of plans.");
  app.add_option("--lengths", lengths,
                 "CSV of real lengths, planned at 4,096 tokens and 15 images");
  app.add_option("--samples", samples, "samples of the plan at scale")->capture_default_str();
  app.add_option("--pictures", pictures, "pictures of the epochs of buckets")
      ->capture_default_str();
  app.add_flag("--only-buckets", only_buckets, "epochs of buckets alone");
  app.add_flag("--only-scale", only_scale, "leave the comparisons out");
  CLI11_PARSE(app, argc, argv);
  if (only_buckets) {
    mm::bench::compare_buckets(pictures);
    return 0;
  }
  scale(samples);  // first: the peak is the process's
  if (only_scale) return 0;
  if (!lengths.empty()) compare({"real lengths", read_lengths(lengths).sizes, {4096, 15}});
  compare({"LLaVA-1.5", llava_lengths(100'000), {2048, 0}});
  compare({"LLaVA-1.5", llava_lengths(100'000), {4096, 0}});
  compare({"any-res", any_res_lengths(60'000), {8192, 0}});
  compare({"any-res", any_res_lengths(60'000), {16'384, 0}});
  mm::bench::compare_buckets(pictures);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const mm::Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return static_cast<int>(e.exit_code());
  }
}
