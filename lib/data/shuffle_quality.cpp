#include "lib/data/shuffle_quality.h"

#include <algorithm>
#include <cmath>

namespace mm::data {
namespace {

/// Sum of squared deviations of a stream of numbers (Welford).
struct Spread {
  double count = 0, mean = 0, squares = 0;
  void add(double value) {
    count += 1;
    const double delta = value - mean;
    mean += delta / count;
    squares += delta * (value - mean);
  }
};

double within_steps(std::span<const SampleSize> sizes, const PlanView& plan) {
  Spread all;
  double squares = 0, freedom = 0;
  for (uint64_t s = 0; s < plan.steps(); ++s) {
    Spread step;
    const uint64_t begin = plan.pack_begin[plan.step_begin[s]];
    const uint64_t end = plan.pack_begin[plan.step_begin[s + 1]];
    for (uint64_t i = begin; i < end; ++i) {
      step.add(sizes[plan.rows[i]].tokens);
      all.add(sizes[plan.rows[i]].tokens);
    }
    squares += step.squares;
    freedom += step.count - 1;
  }
  if (freedom <= 0 || all.squares <= 0) return 1;
  return std::min(1.0, squares / freedom / (all.squares / (all.count - 1)));
}

double distance(const PlanView& plan) {
  const auto n = static_cast<double>(plan.rows.size());
  if (n < 2) return 1;
  double sum = 0;
  for (size_t i = 0; i < plan.rows.size(); ++i)
    sum += std::abs(static_cast<double>(plan.rows[i]) - static_cast<double>(i));
  return std::min(1.0, sum / n / (n / 3));
}

}  // namespace

ShuffleQuality shuffle_quality(std::span<const SampleSize> sizes, const PlanView& plan) {
  return {within_steps(sizes, plan), distance(plan)};
}

}  // namespace mm::data
