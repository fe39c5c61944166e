#include "lib/data/bucket_report.h"

#include <algorithm>
#include <chrono>

#include "lib/base/error.h"
#include "lib/data/bucket_baselines.h"
#include "lib/data/bucket_planner.h"
#include "lib/data/plan_file.h"
#include "lib/data/step_balance.h"

namespace mm::data {
namespace {

constexpr int kMostRanks = 1024;

/// A number of ranks and the batches of its step.
struct Case {
  int ranks = 1, batches_per_step = 1;
};

std::vector<Case> cases_of(const BucketReportOptions& options) {
  std::vector<Case> cases;
  const int per_step = options.plan.packs_per_step;
  if (per_step <= 0) {
    if (options.ranks > 0) return {{options.ranks, options.ranks}};
    for (int ranks = 1; ranks <= kMostRanks; ranks *= 2) cases.push_back({ranks, ranks});
    return cases;
  }
  for (int ranks = 1; ranks <= std::min(per_step, kMostRanks); ranks *= 2) {
    if (per_step % ranks == 0 && ranks != options.ranks) cases.push_back({ranks, per_step});
  }
  if (options.ranks > 0) cases.push_back({options.ranks, per_step});
  return cases;
}

/// Pixels that each rank has of a step.
std::vector<double> dealt_pixels(std::span<const double> packs, int ranks) {
  std::vector<double> per_rank;
  for (const auto& mine : deal_evenly(packs, static_cast<size_t>(ranks))) {
    double sum = 0;
    for (const uint32_t pack : mine) sum += packs[pack];
    per_rank.push_back(sum);
  }
  return per_rank;
}

/// Pixels of the packs of a step.
std::vector<double> pixels_of(std::span<const SampleSize> sizes, const PlanView& plan, uint64_t s) {
  const int64_t first = sizes[plan.pack(plan.step_begin[s]).front()].bucket.pixels();
  std::vector<double> pixels;
  for (uint64_t p = plan.step_begin[s]; p < plan.step_begin[s + 1]; ++p) {
    const auto rows = plan.pack(p);
    const int64_t one = rows.empty() ? first : sizes[rows.front()].bucket.pixels();
    pixels.push_back(static_cast<double>(one) *
                     static_cast<double>(rows.size() + plan.fillers_of(p)));
  }
  return pixels;
}

/// Time by the steps whose balance is measured; the others take the slots' most, which is what
/// their ranks come to within the measured balance.
void measure(std::span<const SampleSize> sizes, const PlanView& plan, RankRow& row) {
  const uint64_t steps = plan.steps(), stride = (steps + kReportedSteps - 1) / kReportedSteps;
  double all = 0, real = 0, time = 0;
  std::vector<double> ratios;
  for (uint64_t s = 0; s < steps; ++s) {
    const std::vector<double> packs = pixels_of(sizes, plan, s);
    double sum = 0;
    for (const double pixels : packs) sum += pixels;
    all += sum;
    const bool even = std::ranges::all_of(packs, [&](double p) { return p == packs.front(); });
    const bool whole = packs.size() % static_cast<size_t>(row.ranks) == 0;
    double ratio = 1;
    if (!even || !whole) {
      const bool counted = s % stride == 0 || packs.size() == static_cast<size_t>(row.ranks);
      ratio = counted ? max_over_mean(dealt_pixels(packs, row.ranks)) : max_over_mean(packs);
      if (!counted) {
        time += ratio * sum / row.ranks;
        continue;
      }
    }
    time += ratio * sum / row.ranks;
    ratios.push_back(ratio);
  }
  for (const uint32_t r : plan.rows) real += static_cast<double>(sizes[r].bucket.pixels());
  row.filler_share = 1 - real / all;
  row.plan.steps = steps;
  row.plan.time = time * row.ranks / real;
  row.plan.pixels = summed_up(std::move(ratios));
}

RankRow row_of(std::span<const SampleSize> sizes, const PlanTable& plan, const Case& at) {
  RankRow row{.ranks = at.ranks, .batches_per_step = at.batches_per_step};
  row.dropped = plan.dropped.size();
  for (const uint32_t fillers : plan.fillers) row.fillers += fillers;
  measure(sizes, plan.view(), row);
  return row;
}

}  // namespace

BucketPlanReport report_bucket_plan(std::span<const SampleSize> sizes,
                                    const BucketReportOptions& options) {
  BucketPlanReport report{
      .epoch = options.epoch, .pictures = sizes.size(), .batch_pixels = options.plan.batch_pixels};
  if (sizes.empty()) throw DataError("there are no pictures to plan");
  PlanTable plan;
  int planned = 0;
  double seconds = 0;
  ShuffledShapes shapes;
  for (const Case& at : cases_of(options)) {
    if (at.batches_per_step != planned) {
      const auto begin = std::chrono::steady_clock::now();
      PlanOptions now = options.plan;
      now.packing = Packing::kBuckets;
      now.packs_per_step = planned = at.batches_per_step;
      const BucketPlanner planner(sizes, now);
      plan = planner.plan(options.epoch);
      seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      report.buckets.assign(planner.buckets().begin(), planner.buckets().end());
    }
    report.rows.push_back(row_of(sizes, plan, at));
    report.rows.back().seconds = seconds;
    if (!options.compare) continue;
    if (shapes.shapes.empty()) shapes = shuffle_shapes(sizes, options.plan, options.epoch);
    const int batches = micro_batches_per_rank(static_cast<size_t>(at.batches_per_step), at.ranks);
    report.rows.back().others = other_ways(shapes, at.ranks, batches);
  }
  for (size_t b = 0; b < report.buckets.size(); ++b) {
    const BucketShape shape = report.buckets[b].shape;
    report.batch.push_back(pictures_in_budget(shape, options.plan.batch_pixels));
    if (shape.pixels() > options.plan.batch_pixels) report.over_budget.push_back(b);
  }
  report.plan_hash = hash_plan(plan.view());
  return report;
}

}  // namespace mm::data
