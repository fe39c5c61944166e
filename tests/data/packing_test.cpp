#include "lib/data/packing.h"

#include <doctest/doctest.h>

#include <numeric>

using namespace mm::data;

TEST_CASE("pack_in_order: first fit, the fullest of the open packs is closed") {
  std::vector<SampleSize> sizes(kOpenPacks + 1, {.tokens = 6, .images = 1});
  sizes[2].tokens = 9;
  std::vector<uint32_t> rows(sizes.size());
  std::iota(rows.begin(), rows.end(), 0u);
  const PackList packs = pack_in_order(sizes, rows, {.tokens = 10});
  REQUIRE(packs.packs() == sizes.size());
  CHECK(packs.pack(0)[0] == 2);
}

TEST_CASE("pack_in_order: all three caps hold") {
  const std::vector<SampleSize> sizes(12, {.tokens = 3, .images = 2});
  std::vector<uint32_t> rows(sizes.size());
  std::iota(rows.begin(), rows.end(), 0u);
  CHECK(pack_in_order(sizes, rows, {.tokens = 12}).packs() == 3);
  CHECK(pack_in_order(sizes, rows, {.tokens = 12, .images = 6}).packs() == 4);
  // 3 tokens are 6 pairs.
  CHECK(pack_in_order(sizes, rows, {.tokens = 12, .attention_pairs = 12}).packs() == 6);
}

TEST_CASE("pack_room: how often a sample fits is the scarcest capacity's") {
  const PackRoom room = PackRoom::of({.tokens = 100, .images = 7, .attention_pairs = 200});
  CHECK(room.times(10, 1, 99) == 3);  // 55 pairs each
  CHECK(room.times(4, 2, 99) == 3);
  CHECK(room.times(4, 0, 5) == 5);
  CHECK(room.times(0, 0, 9) == 9);
  CHECK(room.fits(10, 1, 3));
  CHECK(!room.fits(10, 1, 4));
}

TEST_CASE("make_pack: sums are those of its rows") {
  const std::vector<SampleSize> sizes = {{.tokens = 3, .images = 1, .targets = 2},
                                         {.tokens = 5, .images = 0, .targets = 4}};
  const Pack pack = make_pack(sizes, std::vector<uint32_t>{1, 0}, 2);
  CHECK(pack.tokens == 8);
  CHECK(pack.images == 1);
  CHECK(pack.targets == 6);
  CHECK(pack.attention_pairs == 6 + 15);
  CHECK(pack.cost == doctest::Approx(10 + 21 / 12288.0));
}
