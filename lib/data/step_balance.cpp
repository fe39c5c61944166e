#include "lib/data/step_balance.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "lib/base/error.h"
#include "lib/data/shuffle.h"

namespace mm::data {

double pack_cost(const Pack& pack) {
  return static_cast<double>(pack.tokens) + pack.attention_pairs / kPairsPerToken;
}

std::vector<std::vector<uint32_t>> longest_first(const std::vector<double>& costs, size_t bins,
                                                 size_t capacity) {
  MM_CHECK(bins * capacity >= costs.size(), "{} items, {} bins of {}", costs.size(), bins,
           capacity);
  std::vector<uint32_t> order(costs.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return costs[a] > costs[b]; });
  using Load = std::pair<double, uint32_t>;
  std::priority_queue<Load, std::vector<Load>, std::greater<>> lightest;
  for (size_t b = 0; b < bins; ++b) lightest.push({0.0, static_cast<uint32_t>(b)});
  std::vector<std::vector<uint32_t>> result(bins);
  for (const uint32_t item : order) {
    const auto [load, bin] = lightest.top();
    lightest.pop();
    result[bin].push_back(item);
    if (result[bin].size() < capacity) lightest.push({load + costs[item], bin});
  }
  for (auto& bin : result) std::sort(bin.begin(), bin.end());
  return result;
}

namespace {

/// Appends the steps of packs[begin, end), a whole number of them.
void balance_window(std::vector<Pack>& packs, size_t begin, size_t end, size_t per_step,
                    std::vector<std::vector<Pack>>& steps) {
  std::vector<double> costs;
  for (size_t i = begin; i < end; ++i) costs.push_back(pack_cost(packs[i]));
  for (const auto& bin : longest_first(costs, (end - begin) / per_step, per_step)) {
    auto& step = steps.emplace_back();
    for (const uint32_t item : bin) step.push_back(std::move(packs[begin + item]));
  }
}

}  // namespace

std::vector<std::vector<Pack>> balance_steps(std::vector<Pack> packs, int32_t packs_per_step,
                                             const Philox& random) {
  const auto per_step = static_cast<size_t>(packs_per_step);
  const size_t whole = packs.size() / per_step * per_step;
  std::vector<std::vector<Pack>> steps;
  for (size_t begin = 0; begin < whole;) {
    const size_t end = std::min(whole, begin + kStepsPerWindow * per_step);
    const size_t first_step = steps.size();
    balance_window(packs, begin, end, per_step, steps);
    shuffle(std::span(steps).subspan(first_step), random.child(first_step));
    begin = end;
  }
  if (whole < packs.size()) {
    auto& last = steps.emplace_back();
    for (size_t i = whole; i < packs.size(); ++i) last.push_back(std::move(packs[i]));
  }
  return steps;
}

}  // namespace mm::data
