#include "lib/data/packing.h"

#include <doctest/doctest.h>

#include <numeric>

using namespace mm::data;

namespace {

std::vector<uint32_t> all_rows(size_t count) {
  std::vector<uint32_t> rows(count);
  std::iota(rows.begin(), rows.end(), 0u);
  return rows;
}

}  // namespace

TEST_CASE("pack_rows: best fit decreasing by hand") {
  const std::vector<SampleSize> sizes = {
      {.tokens = 4}, {.tokens = 6}, {.tokens = 3}, {.tokens = 5}, {.tokens = 2}};
  const auto packs = pack_rows(sizes, all_rows(5), {.tokens = 10});
  REQUIRE(packs.size() == 2);
  CHECK(packs[0].samples == std::vector<uint32_t>{1, 0});
  CHECK(packs[1].samples == std::vector<uint32_t>{3, 2, 4});
  CHECK(packs[0].attention_pairs == 21 + 10);
}

TEST_CASE("pack_rows: the image cap opens a new pack where tokens would fit") {
  const std::vector<SampleSize> sizes(4, {.tokens = 2, .images = 2});
  CHECK(pack_rows(sizes, all_rows(4), {.tokens = 8}).size() == 1);
  CHECK(pack_rows(sizes, all_rows(4), {.tokens = 8, .images = 4}).size() == 2);
  CHECK(pack_rows(sizes, all_rows(4), {.tokens = 8, .images = 3}).size() == 4);
}

TEST_CASE("pack_rows: equal lengths keep the order of the rows") {
  const std::vector<SampleSize> sizes(6, {.tokens = 1});
  const auto packs = pack_rows(sizes, std::vector<uint32_t>{3, 1, 5, 0}, {.tokens = 2});
  REQUIRE(packs.size() == 2);
  CHECK(packs[0].samples == std::vector<uint32_t>{3, 1});
  CHECK(packs[1].samples == std::vector<uint32_t>{5, 0});
}

TEST_CASE("make_pack: sums are those of its rows") {
  const std::vector<SampleSize> sizes = {{.tokens = 3, .images = 1, .targets = 2},
                                         {.tokens = 5, .images = 0, .targets = 4}};
  const Pack pack = make_pack(sizes, {1, 0});
  CHECK(pack.tokens == 8);
  CHECK(pack.images == 1);
  CHECK(pack.targets == 6);
  CHECK(pack.attention_pairs == 6 + 15);
}
