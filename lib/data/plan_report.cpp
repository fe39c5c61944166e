#include "lib/data/plan_report.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

#include "lib/data/epoch_planner.h"
#include "lib/data/pack_bound.h"
#include "lib/data/plan_file.h"

namespace mm::data {
namespace {

/// max / mean over ranks of one quantity, step by step.
class Balance {
 public:
  template <typename Value>
  void add(const std::vector<Pack>& step, const std::vector<std::vector<uint32_t>>& dealt,
           Value value) {
    std::vector<double> per_rank;
    for (const auto& mine : dealt) {
      double sum = 0;
      for (const uint32_t pack : mine) sum += static_cast<double>(value(step[pack]));
      per_rank.push_back(sum);
    }
    ratios_.push_back(max_over_mean(per_rank));
  }
  Imbalance summed() { return summed_up(std::move(ratios_)); }

 private:
  std::vector<double> ratios_;
};

/// One pass over the steps.
class Measure {
 public:
  Measure(const PlanOptions& options, PlanReport& report) : options_(options), report_(report) {}

  void add(uint64_t s, const std::vector<Pack>& step, bool counts) {
    double cost = 0;
    for (const Pack& pack : step) {
      add_totals(s, pack);
      cost += pack.cost;
    }
    report_.empty_slots +=
        static_cast<uint64_t>(micro_batches_per_rank(step.size(), report_.ranks)) *
            static_cast<uint64_t>(report_.ranks) -
        step.size();
    if (!counts) return;
    step_costs_.push_back(cost);
    const auto dealt = deal_step(step, report_.ranks);
    cost_.add(step, dealt, [](const Pack& pack) { return pack.cost; });
    tokens_.add(step, dealt, [](const Pack& pack) { return pack.tokens; });
    attention_.add(step, dealt, [](const Pack& pack) { return pack.attention_pairs; });
    images_.add(step, dealt, [](const Pack& pack) { return pack.images; });
  }

  void finish() {
    report_.rank_cost = cost_.summed();
    report_.rank_tokens = tokens_.summed();
    report_.rank_attention = attention_.summed();
    report_.rank_images = images_.summed();
    if (!step_costs_.empty()) report_.step_cost_worst = max_over_mean(step_costs_);
    report_.distinct_pack_lengths =
        static_cast<uint64_t>(std::count(lengths_.begin(), lengths_.end(), true));
    if (report_.packs > 0 && total_cost_ > 0)
      report_.costliest.cost_over_mean = most_ * static_cast<double>(report_.packs) / total_cost_;
  }

 private:
  void add_totals(uint64_t s, const Pack& pack) {
    ++report_.packs;
    report_.samples += pack.samples.size();
    report_.tokens += static_cast<uint64_t>(pack.tokens);
    report_.images += static_cast<uint64_t>(pack.images);
    report_.targets += static_cast<uint64_t>(pack.targets);
    lengths_[static_cast<size_t>(pack.tokens)] = true;
    total_cost_ += pack.cost;
    if (pack.cost <= most_) return;
    most_ = pack.cost;
    report_.costliest = {s, pack.samples.size(), pack.tokens, pack.images, 1};
  }

  const PlanOptions& options_;
  PlanReport& report_;
  Balance cost_, tokens_, attention_, images_;
  std::vector<double> step_costs_;
  std::vector<bool> lengths_ = std::vector<bool>(static_cast<size_t>(options_.sequence_length) + 1);
  double total_cost_ = 0, most_ = -1;
};

void add_bound(std::span<const SampleSize> sizes, const PlanView& plan, const PlanOptions& options,
               PlanReport& report) {
  const auto types = length_types(sizes, plan.dropped).types;
  PackBound bound = pack_bound(types, limits_of(options), false);
  // Prices take longest, and prove nothing more of a plan that is as small as it can be.
  if (bound.packs < report.packs) bound = pack_bound(types, limits_of(options));
  report.packs_lower_bound = bound.packs;
  report.bound_proof = bound.proof;
  if (report.packs == 0) return;
  const auto padding = [&](uint64_t packs) {
    return 1 - static_cast<double>(report.tokens) /
                   (static_cast<double>(packs) * static_cast<double>(options.sequence_length));
  };
  const auto packs = static_cast<double>(report.packs);
  report.padding = padding(report.packs);
  report.padding_lower_bound = padding(bound.packs);
  report.bound_gap = packs / static_cast<double>(bound.packs) - 1;
  report.samples_per_pack = static_cast<double>(report.samples) / packs;
}

}  // namespace

PlanReport measure_plan(std::span<const SampleSize> sizes, const PlanView& plan,
                        const PlanOptions& options, int ranks) {
  PlanReport report{.ranks = ranks, .packing = options.packing, .steps = plan.steps()};
  report.dropped = plan.dropped.size();
  Measure measure(options, report);
  const auto full = static_cast<uint64_t>(options.packs_per_step);
  for (uint64_t s = 0; s < plan.steps(); ++s) {
    measure.add(s, packs_of_step(sizes, plan, s, options.image_cost),
                plan.packs_of_step(s) == full || plan.steps() == 1);
  }
  measure.finish();
  report.packs_in_last_step = plan.steps() == 0 ? 0 : plan.packs_of_step(plan.steps() - 1);
  report.micro_batches_per_rank = micro_batches_per_rank(full, ranks);
  report.shuffle = shuffle_quality(sizes, plan);
  report.plan_hash = hash_plan(plan);
  return report;
}

PlanReport report_plan(std::span<const SampleSize> sizes, const PlanView& plan,
                       const PlanOptions& options, int ranks) {
  PlanReport report = measure_plan(sizes, plan, options, ranks);
  add_bound(sizes, plan, options, report);
  return report;
}

PlanReport report_plan(std::span<const SampleSize> sizes, const PlanOptions& options,
                       uint64_t epoch, int ranks) {
  const auto begin = std::chrono::steady_clock::now();
  const EpochPlanner planner(sizes, options);
  const PlanTable table = planner.plan(epoch);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  PlanReport report = report_plan(sizes, table.view(), options, ranks);
  report.epoch = epoch;
  report.packing = planner.packing();
  report.plan_seconds = took.count();
  return report;
}

}  // namespace mm::data
