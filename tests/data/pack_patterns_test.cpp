#include "lib/data/pack_patterns.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "lib/base/env.h"
#include "lib/data/pack_bound.h"
#include "lib/data/pack_search.h"
#include "tests/data/length_sets.h"

using namespace mm::data;
using namespace mm::data::test;

namespace {

using Packer = std::function<PackPatterns(std::span<const LengthType>, const PackLimits&)>;

const std::vector<std::pair<const char*, Packer>> kPackers = {
    {"greedy", [](auto types, auto& limits) { return pack_greedy(types, limits); }},
    {"best_fit", [](auto types, auto& limits) { return pack_best_fit(types, limits); }},
    {"exact", [](auto types, auto& limits) { return pack_exact(types, limits); }},
    {"search", [](auto types, auto& limits) { return pack_search(types, limits); }}};

/// Every type as often as it occurs, no pack past a cap.
void check_packs(std::span<const LengthType> types, const PackLimits& limits,
                 const PackPatterns& packs) {
  std::vector<uint64_t> seen(types.size());
  size_t over = 0;
  for (size_t p = 0; p < packs.size(); ++p) {
    PackRoom room = PackRoom::of(limits);
    for (const uint32_t t : packs.pattern(p)) {
      seen[t] += packs.times[p];
      room.take(types[t].tokens, types[t].images);
    }
    over += room.tokens < 0 || room.images < 0 || room.pairs < 0;
    CHECK(packs.times[p] > 0);
  }
  CHECK(over == 0);
  size_t wrong = 0;
  for (size_t t = 0; t < types.size(); ++t) wrong += seen[t] != types[t].count;
  CHECK(wrong == 0);
}

LengthTypes types_of(std::initializer_list<SampleSize> sizes) {
  return length_types(std::vector<SampleSize>(sizes));
}

}  // namespace

TEST_CASE("length_types: longest first, rows to skip have none") {
  const std::vector<SampleSize> sizes = {{4, 1}, {6, 0}, {4, 2}, {4, 1}, {9, 0}};
  const LengthTypes types = length_types(sizes, std::vector<uint32_t>{4});
  REQUIRE(types.types.size() == 3);
  CHECK(types.types[0].tokens == 6);
  CHECK(types.types[1].images == 2);
  CHECK(types.types[2].count == 2);
  CHECK(types.type_of == std::vector<uint32_t>{2, 0, 1, 2, LengthTypes::kNone});
}

TEST_CASE("pack_best_fit: by hand") {
  const auto set = types_of({{4}, {6}, {3}, {5}, {2}});
  const PackPatterns packs = pack_best_fit(set.types, {.tokens = 10});
  REQUIRE(packs.packs() == 2);
  check_packs(set.types, {.tokens = 10}, packs);
}

TEST_CASE("packers: the image and the attention cap open packs where tokens would fit") {
  const auto set = types_of({{2, 2}, {2, 2}, {2, 2}, {2, 2}});
  for (const auto& [name, pack] : kPackers) {
    CAPTURE(name);
    CHECK(pack(set.types, {.tokens = 8}).packs() == 1);
    CHECK(pack(set.types, {.tokens = 8, .images = 4}).packs() == 2);
    CHECK(pack(set.types, {.tokens = 8, .images = 3}).packs() == 4);
    CHECK(pack(set.types, {.tokens = 8, .attention_pairs = 9}).packs() == 2);  // 3 pairs each: 3, 1
  }
}

TEST_CASE("pack_exact: finds the pair that fills where the longest does not") {
  // 6 + 3 leaves 1; 6 + 2 + 2 fills.
  const auto set = types_of({{6}, {3}, {2}, {2}, {7}});
  CHECK(pack_exact(set.types, {.tokens = 10}).packs() == 2);
  CHECK(pack_greedy(set.types, {.tokens = 10}).packs() == 2);
}

TEST_CASE("packers: every sample once and no cap passed, over random sets, above the bound") {
  const bool more = mm::env::get("MM_LONG").has_value();
  for (uint64_t seed = 0; seed < 14; ++seed) {
    const mm::Philox random(seed, "test sets");
    const size_t count = random.below(1, more ? 400 : 100);
    const auto longest = static_cast<int32_t>(1 + random.below(2, 900));
    std::vector<SampleSize> sizes;
    for (size_t i = 0; i < count; ++i) {
      sizes.push_back({.tokens = static_cast<int32_t>(
                           random.below(10 + 2 * i, static_cast<uint64_t>(longest) + 1)),
                       .images = static_cast<int32_t>(random.below(11 + 2 * i, 4))});
    }
    const PackLimits limits{
        .tokens = 1000, .images = seed % 2 ? 6 : 0, .attention_pairs = seed % 3 ? 0 : 501'000};
    const auto set = length_types(sizes);
    const PackBound bound = pack_bound(set.types, limits);
    for (const auto& [name, pack] : kPackers) {
      CAPTURE(name);
      CAPTURE(seed);
      const PackPatterns packs = pack(set.types, limits);
      check_packs(set.types, limits, packs);
      CHECK(packs.packs() >= bound.packs);
    }
  }
}

TEST_CASE("internvl lengths at 4,096 tokens and 15 images: padding within 0.8 %, no cap passed") {
  const auto set = length_types(internvl_lengths());
  const PackLimits limits{.tokens = 4096, .images = 15};
  uint64_t tokens = 0;
  for (const LengthType& type : set.types)
    tokens += type.count * static_cast<uint64_t>(type.tokens);
  REQUIRE(tokens == 80'285'377);
  const auto padding = [&](const PackPatterns& packs) {
    return 1 - static_cast<double>(tokens) / (4096.0 * static_cast<double>(packs.packs()));
  };
  const PackPatterns search = pack_search(set.types, limits);
  check_packs(set.types, limits, search);
  CHECK(padding(search) <= 0.004);
  for (const auto& [name, pack] : kPackers) {
    CAPTURE(name);
    const PackPatterns packs = pack(set.types, limits);
    check_packs(set.types, limits, packs);
    CHECK(padding(packs) <= 0.0305);
  }
  const PackBound bound = pack_bound(set.types, limits);
  CHECK(bound.packs >= 19'601);
  CHECK(search.packs() >= bound.packs);
  CHECK(static_cast<double>(search.packs()) <= 1.004 * static_cast<double>(bound.packs));
}
