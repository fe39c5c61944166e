#include "lib/data/step_balance.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "lib/base/error.h"
#include "lib/data/shuffle.h"

namespace mm::data {

double pack_cost(const Pack& pack, double image_cost) {
  if (!pack.bucket.empty()) return static_cast<double>(pack.pixels());
  return static_cast<double>(pack.tokens) + pack.attention_pairs / kPairsPerToken +
         image_cost * static_cast<double>(pack.images);
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

/// A way to fill all bins with some of the items, heaviest bin first.
struct Partial {
  struct Bin {
    double cost = 0;
    std::vector<uint32_t> items;
  };
  std::vector<Bin> bins;
  uint32_t id = 0;  ///< breaks ties

  double spread() const { return bins.front().cost - bins.back().cost; }
  bool operator<(const Partial& other) const {
    return spread() != other.spread() ? spread() < other.spread() : id > other.id;
  }
};

/// Lightest bins of `b` go to the heaviest of `a`.
Partial joined(Partial a, Partial b, uint32_t id) {
  for (size_t i = 0; i < a.bins.size(); ++i) {
    Partial::Bin& from = b.bins[b.bins.size() - 1 - i];
    a.bins[i].cost += from.cost;
    a.bins[i].items.insert(a.bins[i].items.end(), from.items.begin(), from.items.end());
  }
  std::stable_sort(a.bins.begin(), a.bins.end(),
                   [](const auto& x, const auto& y) { return x.cost > y.cost; });
  a.id = id;
  return a;
}

/// The next `bins` items of `order`, one a bin; bins beyond the end stay empty.
Partial one_each(std::span<const double> costs, std::span<const uint32_t> order, size_t begin,
                 size_t bins) {
  Partial partial{.id = static_cast<uint32_t>(begin / bins)};
  for (size_t i = begin; i < begin + bins; ++i) {
    if (i < order.size())
      partial.bins.push_back({costs[order[i]], {order[i]}});
    else
      partial.bins.push_back({});
  }
  return partial;
}

}  // namespace

std::vector<std::vector<uint32_t>> deal_evenly(std::span<const double> costs, size_t bins) {
  MM_CHECK(bins > 0, "{} bins", bins);
  std::vector<uint32_t> order(costs.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return costs[a] > costs[b]; });
  std::vector<Partial> heap;
  for (size_t begin = 0; begin < order.size(); begin += bins)
    heap.push_back(one_each(costs, order, begin, bins));
  std::make_heap(heap.begin(), heap.end());
  auto next_id = static_cast<uint32_t>(heap.size());
  const auto pop = [&] {
    std::pop_heap(heap.begin(), heap.end());
    Partial top = std::move(heap.back());
    heap.pop_back();
    return top;
  };
  while (heap.size() > 1) {
    Partial first = pop();
    heap.push_back(joined(std::move(first), pop(), next_id++));
    std::push_heap(heap.begin(), heap.end());
  }
  std::vector<std::vector<uint32_t>> result(bins);
  for (size_t b = 0; b < bins && !heap.empty(); ++b) {
    result[b] = std::move(heap.front().bins[b].items);
    std::sort(result[b].begin(), result[b].end());
  }
  return result;
}

namespace {

void end_step(StepOrder& order) { order.begin.push_back(order.packs.size()); }

/// Shuffles steps [first, all) as wholes.
void shuffle_steps(StepOrder& order, size_t first, const Philox& random) {
  std::vector<uint32_t> turn(order.steps() - first);
  std::iota(turn.begin(), turn.end(), 0u);
  shuffle(std::span(turn), random);
  const StepOrder old = order;
  order.packs.resize(old.begin[first]);
  order.begin.resize(first + 1);
  for (const uint32_t t : turn) {
    const size_t s = first + t;
    order.packs.insert(order.packs.end(), old.packs.begin() + static_cast<ptrdiff_t>(old.begin[s]),
                       old.packs.begin() + static_cast<ptrdiff_t>(old.begin[s + 1]));
    end_step(order);
  }
}

/// Where the stratum that begins at `begin` ends: costs within kStratum, and no cost so far above
/// the mean that a step which drew it would wait for it.
size_t stratum_end(std::span<const PackLoad> packs, std::span<const uint32_t> sorted,
                   size_t begin) {
  const double most = packs[sorted[begin]].cost * (1 + kStratum);
  size_t end = begin + 1;
  double sum = 0;
  for (size_t i = begin; i < sorted.size() && packs[sorted[i]].cost <= most; ++i) {
    const double cost = packs[sorted[i]].cost;
    sum += cost;
    if (cost * static_cast<double>(i + 1 - begin) <= (1 + kOverMean) * sum) end = i + 1;
  }
  return end;
}

/// Shuffles spans of nearly one cost, whole steps each: what shares a step is then drawn from all
/// packs of that cost.
void shuffle_strata(std::span<const PackLoad> packs, std::span<uint32_t> sorted, size_t per_step,
                    const Philox& random) {
  for (size_t begin = 0; begin < sorted.size();) {
    const size_t whole_steps = (stratum_end(packs, sorted, begin) - begin) / per_step;
    // A stratum that ended inside a step would leave that step mixed.
    const size_t end = std::min(sorted.size(), begin + std::max<size_t>(1, whole_steps) * per_step);
    shuffle(sorted.subspan(begin, end - begin), random.child(begin));
    begin = end;
  }
}

/// Of the packs that the short last step takes, how many should be the cheapest (the others are the
/// costliest): such that whole steps of neighbours in cost wait least in the worst of them.
/// `sorted` by cost.
size_t cheap_in_last(std::span<const PackLoad> packs, std::span<const uint32_t> sorted,
                     size_t per_step) {
  const size_t last = sorted.size() % per_step;
  std::vector<double> sum{0};
  for (const uint32_t id : sorted) sum.push_back(sum.back() + packs[id].cost);
  const auto worst_from = [&](size_t begin) {
    double worst = 1;
    for (size_t end = begin + per_step; end <= sorted.size() - last + begin; end += per_step) {
      const double mean = (sum[end] - sum[end - per_step]) / static_cast<double>(per_step);
      if (mean > 0) worst = std::max(worst, packs[sorted[end - 1]].cost / mean);
    }
    return worst;
  };
  // What packing left over is cheap: it goes there unless much is won.
  constexpr double kWorthIt = 1e-4;
  size_t best = last;
  double least = worst_from(last);
  for (size_t cheap = last; cheap-- > 0;) {
    const double worst = worst_from(cheap);
    if (worst >= least - kWorthIt) continue;
    best = cheap;
    least = worst;
  }
  return best;
}

void cut_steps(StepOrder& order, std::span<const uint32_t> packs, size_t per_step) {
  for (size_t i = 0; i < packs.size(); i += per_step) {
    const auto step = packs.subspan(i, std::min(per_step, packs.size() - i));
    order.packs.insert(order.packs.end(), step.begin(), step.end());
    end_step(order);
  }
}

}  // namespace

StepOrder balance_steps(std::span<const PackLoad> packs, int32_t packs_per_step,
                        const Philox& random) {
  const auto per_step = static_cast<size_t>(packs_per_step);
  const size_t whole = packs.size() / per_step * per_step;
  StepOrder order;
  for (size_t begin = 0; begin < whole;) {
    const size_t end = std::min(whole, begin + kStepsPerWindow * per_step);
    const size_t first_step = order.steps();
    std::vector<double> costs;
    for (size_t i = begin; i < end; ++i) costs.push_back(packs[i].cost);
    for (const auto& bin : longest_first(costs, (end - begin) / per_step, per_step)) {
      for (const uint32_t item : bin) order.packs.push_back(static_cast<uint32_t>(begin + item));
      end_step(order);
    }
    shuffle_steps(order, first_step, random.child(first_step));
    begin = end;
  }
  if (whole < packs.size()) {
    for (size_t i = whole; i < packs.size(); ++i) order.packs.push_back(static_cast<uint32_t>(i));
    end_step(order);
  }
  return order;
}

StepOrder group_steps(std::span<const PackLoad> packs, int32_t packs_per_step,
                      const Philox& random) {
  const auto per_step = static_cast<size_t>(packs_per_step);
  const auto by_cost = [&](uint32_t a, uint32_t b) {
    return packs[a].cost != packs[b].cost ? packs[a].cost < packs[b].cost : a < b;
  };
  std::vector<uint32_t> ids(packs.size());
  std::iota(ids.begin(), ids.end(), 0u);
  std::sort(ids.begin(), ids.end(), by_cost);
  const size_t last = packs.size() % per_step, cheap = cheap_in_last(packs, ids, per_step);
  const auto whole = std::span(ids).subspan(cheap, ids.size() - last);
  const auto rest = whole.subspan(std::min(whole.size(), per_step));
  shuffle_strata(packs, rest, per_step, random.child("packs"));
  StepOrder order;
  cut_steps(order, whole.first(whole.size() - rest.size()), per_step);
  cut_steps(order, rest, per_step);
  shuffle_steps(order, 0, random.child("steps"));
  if (last > 0) {
    order.packs.insert(order.packs.end(), ids.begin(), ids.begin() + static_cast<ptrdiff_t>(cheap));
    order.packs.insert(order.packs.end(), ids.end() - static_cast<ptrdiff_t>(last - cheap),
                       ids.end());
    end_step(order);
  }
  return order;
}

PlanTable arrange_steps(const PackList& packs, const StepOrder& order,
                        std::vector<uint32_t> dropped) {
  PlanTable table;
  table.dropped = std::move(dropped);
  table.rows.reserve(packs.rows.size());
  table.pack_begin.reserve(packs.packs() + 1);
  for (size_t s = 0; s < order.steps(); ++s) {
    for (uint64_t i = order.begin[s]; i < order.begin[s + 1]; ++i) {
      const auto pack = packs.pack(order.packs[i]);
      table.rows.insert(table.rows.end(), pack.begin(), pack.end());
      table.end_pack();
    }
    table.end_step();
  }
  return table;
}

}  // namespace mm::data
