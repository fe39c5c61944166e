#include "lib/data/plan_report.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "lib/data/step_balance.h"

namespace mm::data {
namespace {

double max_over_mean(const std::vector<double>& values) {
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  if (sum == 0) return 1;
  return *std::max_element(values.begin(), values.end()) * static_cast<double>(values.size()) / sum;
}

Imbalance summed_up(std::vector<double> ratios) {
  if (ratios.empty()) return {};
  std::sort(ratios.begin(), ratios.end());
  const auto last = static_cast<double>(ratios.size() - 1);
  return {std::accumulate(ratios.begin(), ratios.end(), 0.0) / static_cast<double>(ratios.size()),
          ratios[static_cast<size_t>(0.99 * last)], ratios.back()};
}

/// max / mean over ranks of a sum over packs, for each step.
template <typename Value>
Imbalance imbalance(const EpochPlan& plan, int ranks, Value value) {
  std::vector<double> ratios;
  for (const auto& step : plan.steps) {
    std::vector<double> per_rank;
    for (const auto& mine : deal_step(step, ranks)) {
      double sum = 0;
      for (const uint32_t pack : mine) sum += static_cast<double>(value(step[pack]));
      per_rank.push_back(sum);
    }
    ratios.push_back(max_over_mean(per_rank));
  }
  return summed_up(std::move(ratios));
}

double step_cost_worst(const EpochPlan& plan, size_t full_step) {
  std::vector<double> costs;
  for (const auto& step : plan.steps) {
    if (step.size() != full_step) continue;
    double cost = 0;
    for (const Pack& pack : step) cost += pack.cost;
    costs.push_back(cost);
  }
  return costs.empty() ? 1 : max_over_mean(costs);
}

void add_totals(const EpochPlan& plan, PlanReport& report) {
  for (const auto& step : plan.steps) {
    report.packs += step.size();
    for (const Pack& pack : step) {
      report.samples += pack.samples.size();
      report.tokens += static_cast<uint64_t>(pack.tokens);
      report.images += static_cast<uint64_t>(pack.images);
      report.targets += static_cast<uint64_t>(pack.targets);
    }
  }
}

Json to_json(const Imbalance& imbalance) {
  return {{"mean", imbalance.mean}, {"p99", imbalance.p99}, {"worst", imbalance.worst}};
}

}  // namespace

PlanReport report_plan(std::span<const SampleSize> sizes, const PlanOptions& options,
                       uint64_t epoch, int ranks) {
  const EpochPlan plan = plan_epoch(sizes, options, epoch);
  PlanReport report{.epoch = epoch, .ranks = ranks, .steps = plan.steps.size()};
  add_totals(plan, report);
  const auto length = static_cast<uint64_t>(options.sequence_length);
  report.packs_lower_bound = (report.tokens + length - 1) / length;
  report.packs_in_last_step = plan.steps.empty() ? 0 : plan.steps.back().size();
  report.micro_batches_per_rank =
      micro_batches_per_rank(static_cast<size_t>(options.packs_per_step), ranks);
  if (report.packs > 0) {
    const auto packs = static_cast<double>(report.packs);
    report.padding = 1 - static_cast<double>(report.tokens) / (packs * static_cast<double>(length));
    report.samples_per_pack = static_cast<double>(report.samples) / packs;
  }
  report.rank_tokens = imbalance(plan, ranks, [](const Pack& pack) { return pack.tokens; });
  report.rank_attention =
      imbalance(plan, ranks, [](const Pack& pack) { return pack.attention_pairs; });
  report.rank_images = imbalance(plan, ranks, [](const Pack& pack) { return pack.images; });
  report.step_cost_worst = step_cost_worst(plan, static_cast<size_t>(options.packs_per_step));
  return report;
}

Json to_json(const PlanReport& report) {
  return {{"schema", 1},
          {"epoch", report.epoch},
          {"ranks", report.ranks},
          {"samples", report.samples},
          {"tokens", report.tokens},
          {"images", report.images},
          {"targets", report.targets},
          {"packs", report.packs},
          {"packs_lower_bound", report.packs_lower_bound},
          {"samples_per_pack", report.samples_per_pack},
          {"padding", report.padding},
          {"steps", report.steps},
          {"packs_in_last_step", report.packs_in_last_step},
          {"micro_batches_per_rank", report.micro_batches_per_rank},
          {"rank_tokens", to_json(report.rank_tokens)},
          {"rank_attention", to_json(report.rank_attention)},
          {"rank_images", to_json(report.rank_images)},
          {"step_cost_worst", report.step_cost_worst}};
}

}  // namespace mm::data
