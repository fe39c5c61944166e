#include "lib/data/row_set.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

using mm::data::RowSet;

TEST_CASE("row set: equal for the same rows in any order and in any parts") {
  RowSet forward, backward, part;
  for (uint64_t row = 0; row < 50; ++row) forward.add(row, "k" + std::to_string(row));
  for (uint64_t row = 50; row-- > 25;) backward.add(row, "k" + std::to_string(row));
  for (uint64_t row = 0; row < 25; ++row) part.add(row, "k" + std::to_string(row));
  backward.add(part);
  CHECK(forward == backward);
  CHECK(forward.hash() == backward.hash());
  CHECK(forward.count() == 50);
  CHECK(forward.hash().size() == 32);
}

TEST_CASE("row set: a lost, doubled, renamed or swapped row shows") {
  const auto set = [](const std::vector<std::pair<uint64_t, std::string>>& rows) {
    RowSet result;
    for (const auto& [row, key] : rows) result.add(row, key);
    return result;
  };
  const RowSet good = set({{0, "a"}, {1, "b"}, {2, "c"}});
  CHECK(!(set({{0, "a"}, {1, "b"}}) == good));
  CHECK(!(set({{0, "a"}, {1, "b"}, {2, "c"}, {2, "c"}}) == good));
  CHECK(set({{0, "a"}, {1, "b"}, {1, "b"}}).hash() != good.hash());
  CHECK(set({{0, "a"}, {1, "b"}, {2, "x"}}).hash() != good.hash());
  CHECK(set({{0, "b"}, {1, "a"}, {2, "c"}}).hash() != good.hash());
}
