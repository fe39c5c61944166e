#include "lib/data/step_balance.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace mm::data;

namespace {

/// 1,000 packs and a few loose ones, as packing leaves them: cost and images vary.
std::vector<PackLoad> some_loads(size_t count, uint64_t seed) {
  const mm::Philox random(seed, "test loads");
  std::vector<PackLoad> loads;
  for (size_t i = 0; i < count; ++i) {
    const bool loose = i % 100 == 0;
    loads.push_back({(loose ? 1000.0 : 4000.0) + static_cast<double>(random.below(2 * i, 400)),
                     static_cast<int64_t>(random.below(2 * i + 1, 4))});
  }
  return loads;
}

double max_over_mean(const StepOrder& order, size_t s, const std::vector<PackLoad>& loads) {
  double most = 0, sum = 0;
  for (uint64_t i = order.begin[s]; i < order.begin[s + 1]; ++i) {
    most = std::max(most, loads[order.packs[i]].cost);
    sum += loads[order.packs[i]].cost;
  }
  return most * static_cast<double>(order.begin[s + 1] - order.begin[s]) / sum;
}

void check_complete(const StepOrder& order, size_t packs, uint64_t per_step) {
  std::vector<uint32_t> sorted = order.packs;
  std::sort(sorted.begin(), sorted.end());
  REQUIRE(sorted.size() == packs);
  for (uint32_t i = 0; i < packs; ++i) CHECK(sorted[i] == i);
  for (size_t s = 0; s + 1 < order.steps(); ++s)
    CHECK(order.begin[s + 1] - order.begin[s] == per_step);
}

}  // namespace

TEST_CASE("longest_first: heaviest to the lightest bin, ties to the lower index") {
  const auto bins = longest_first({5, 4, 3, 3, 3}, 2, 5);
  CHECK(bins[0] == std::vector<uint32_t>{0, 3});
  CHECK(bins[1] == std::vector<uint32_t>{1, 2, 4});
}

TEST_CASE("longest_first: a full bin takes no more, however light it is") {
  const auto bins = longest_first({9, 1, 1, 1}, 2, 2);
  CHECK(bins[0] == std::vector<uint32_t>{0, 3});
  CHECK(bins[1] == std::vector<uint32_t>{1, 2});
}

TEST_CASE("longest_first: fewer items than bins leave bins empty") {
  const auto bins = longest_first({1}, 3, 1);
  CHECK(bins[0].size() == 1);
  CHECK(bins[1].empty());
  CHECK(bins[2].empty());
}

TEST_CASE("balance_steps and group_steps: keep every pack, only the last step is short") {
  for (const size_t packs : {0u, 1u, 3u, 4u, 7u, 8u, 1003u}) {
    const auto loads = some_loads(packs, packs);
    for (const auto& order : {balance_steps(loads, 4, mm::Philox(1, "test")),
                              group_steps(loads, 4, mm::Philox(1, "test"))}) {
      CHECK(order.steps() == (packs + 3) / 4);
      check_complete(order, packs, 4);
    }
  }
}

TEST_CASE("group_steps: packs of a step cost the same, loose ones share the last steps") {
  const auto loads = some_loads(20'000, 3);
  const StepOrder order = group_steps(loads, 64, mm::Philox(1, "test"));
  size_t uneven = 0;
  for (size_t s = 0; s + 1 < order.steps(); ++s) uneven += max_over_mean(order, s, loads) > 1.01;
  // 200 loose packs: 32 in the short last step, 64 in one of their own, the rest in two more.
  CHECK(uneven <= 3);
  CHECK(order.begin[order.steps()] - order.begin[order.steps() - 1] == 20'000 % 64);
}

TEST_CASE("group_steps: a few dear packs of their own kind go into the short step") {
  const mm::Philox random(9, "test costs");
  std::vector<PackLoad> loads;
  for (uint64_t i = 0; i < 64 * 50; ++i)
    loads.push_back({4000 + static_cast<double>(random.below(i, 30)), 0});
  for (int i = 0; i < 20; ++i) loads.push_back({4400.0 + i, 0});
  for (int i = 0; i < 20; ++i) loads.push_back({3000.0 + i, 0});
  const StepOrder order = group_steps(loads, 64, mm::Philox(1, "test"));
  check_complete(order, loads.size(), 64);
  CHECK(order.begin[order.steps()] - order.begin[order.steps() - 1] == 40);
  for (size_t s = 0; s + 1 < order.steps(); ++s) CHECK(max_over_mean(order, s, loads) <= 1.01);
}

TEST_CASE("group_steps: where most packs are cheap and few are dear, no step passes 1 % either") {
  // 1.4 % of cost, falling off fast: nine tenths lie in its lowest quarter.
  const mm::Philox random(8, "test costs");
  std::vector<PackLoad> loads;
  for (uint64_t i = 0; i < 20'000; ++i) {
    const double u = random.uniform(i);
    loads.push_back({4000 + 56 * u * u * u * u * u * u, 0});
  }
  const StepOrder order = group_steps(loads, 64, mm::Philox(1, "test"));
  for (size_t s = 0; s < order.steps(); ++s) CHECK(max_over_mean(order, s, loads) <= 1.01);
}

TEST_CASE("deal_evenly: by hand, equal counts and the least difference") {
  // 8 7 6 5 4 4 on two bins of three: pairs differ by 1, 1, 0 -> 17 and 17.
  const auto bins = deal_evenly(std::vector<double>{8, 7, 6, 5, 4, 4}, 2);
  REQUIRE(bins.size() == 2);
  CHECK(bins[0].size() == 3);
  CHECK(bins[1].size() == 3);
  double first = 0;
  for (const uint32_t i : bins[0]) first += std::vector<double>{8, 7, 6, 5, 4, 4}[i];
  CHECK(first == 17);
}

TEST_CASE("deal_evenly: every item once, counts differ by one at most, closer than longest first") {
  const mm::Philox random(4, "test costs");
  std::vector<double> costs;
  for (uint64_t i = 0; i < 256; ++i)
    costs.push_back(4096 + static_cast<double>(random.below(i, 900)));
  const auto spread = [&](const std::vector<std::vector<uint32_t>>& bins) {
    double most = 0, sum = 0;
    for (const auto& bin : bins) {
      double cost = 0;
      for (const uint32_t i : bin) cost += costs[i];
      most = std::max(most, cost);
      sum += cost;
    }
    return most * static_cast<double>(bins.size()) / sum;
  };
  for (const size_t bins : {1u, 3u, 64u, 255u, 300u}) {
    const auto dealt = deal_evenly(costs, bins);
    std::vector<int> seen(costs.size());
    for (const auto& bin : dealt) {
      CHECK(bin.size() <= (costs.size() + bins - 1) / bins);
      CHECK(std::is_sorted(bin.begin(), bin.end()));
      for (const uint32_t i : bin) ++seen[i];
    }
    CHECK(std::count(seen.begin(), seen.end(), 1) == 256);
  }
  CHECK(spread(deal_evenly(costs, 64)) <= 1.003);
  CHECK(spread(deal_evenly(costs, 64)) < spread(longest_first(costs, 64, 4)));
  CHECK(deal_evenly({}, 3).size() == 3);
}

TEST_CASE("pack_cost: tokens, attention pairs at the stated ratio, pictures at their price") {
  const Pack pack{.tokens = 100, .images = 3, .attention_pairs = 2 * kPairsPerToken};
  CHECK(pack_cost(pack) == 102.0);
  CHECK(pack_cost(pack, 9) == 129.0);
}
