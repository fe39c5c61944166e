#include "lib/data/step_balance.h"

#include <doctest/doctest.h>

#include <map>

using namespace mm::data;

namespace {

Pack pack_of(uint32_t row, int64_t tokens) {
  Pack pack;
  pack.samples = {row};
  pack.tokens = tokens;
  return pack;
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

TEST_CASE("balance_steps: keeps every pack, only the last step is short") {
  std::vector<Pack> packs;
  for (uint32_t i = 0; i < 1003; ++i) packs.push_back(pack_of(i, 1 + i % 17));
  const auto steps = balance_steps(packs, 4, mm::Philox(1, "test"));
  REQUIRE(steps.size() == 251);
  CHECK(steps.back().size() == 3);
  std::map<uint32_t, int> seen;
  for (const auto& step : steps) {
    for (const Pack& pack : step) ++seen[pack.samples[0]];
  }
  CHECK(seen.size() == 1003);
}

TEST_CASE("pack_cost: tokens plus attention pairs at the stated ratio") {
  Pack pack = pack_of(0, 100);
  pack.attention_pairs = 2 * kPairsPerToken;
  CHECK(pack_cost(pack) == 102.0);
}
