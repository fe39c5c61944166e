#include "lib/data/index.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "tests/data/tiny_dataset.h"

using namespace mm::data;
using namespace mm::data::test;
namespace fs = std::filesystem;

namespace {

std::vector<IndexRow> three_rows() {
  return {{5, 32, 0, 100, {9, 1, 3}, 4, 4, "données – 北京 №1.jpg"},
          {6, 6'000'000'000, 1, 4'000'000'000u, {10, 0, 4}, 0, 0, ""},
          {1, 132, 0, 50, {11, 2, 5}, 4, 4, "z", 2}};
}

}  // namespace

TEST_CASE("index: rows come back as they were written") {
  const TempDir dir;
  const auto rows = three_rows();
  write_index(dir / "i.mmi", rows);
  const DatasetIndex index(dir / "i.mmi");
  REQUIRE(index.rows() == 3);
  for (size_t i = 0; i < 3; ++i) {
    const IndexRow row = index.row(i);
    CHECK(row.source_row == rows[i].source_row);
    CHECK(row.offset == rows[i].offset);
    CHECK(row.shard == rows[i].shard);
    CHECK(row.bytes == rows[i].bytes);
    CHECK(row.size.tokens == rows[i].size.tokens);
    CHECK(row.size.images == rows[i].size.images);
    CHECK(row.size.targets == rows[i].size.targets);
    CHECK(row.width == rows[i].width);
    CHECK(row.key == rows[i].key);
    CHECK(row.source == rows[i].source);
  }
  CHECK(index.sizes()[2].targets == 5);
  CHECK_THROWS_AS(index.row(3), mm::InternalError);
}

TEST_CASE("index: an empty one is legal") {
  const TempDir dir;
  write_index(dir / "i.mmi", {});
  CHECK(DatasetIndex(dir / "i.mmi").rows() == 0);
}

TEST_CASE("index: every flipped byte outside the padding is refused, none crashes") {
  const TempDir dir;
  const auto path = dir / "i.mmi";
  write_index(path, three_rows());
  const std::string good = mm::read_file(path);
  size_t harmless = 0;
  for (size_t i = 0; i < good.size(); ++i) {
    std::string damaged = good;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x21);
    mm::write_file_atomic(path, damaged);
    try {
      const DatasetIndex index(path);
      ++harmless;
      CHECK(index.row(1).offset == 6'000'000'000);
    } catch (const mm::DataError&) {
      continue;
    }
  }
  CHECK(harmless < good.size() / 2);  // what lies between the columns
}

TEST_CASE("index: cut or grown files are refused") {
  const TempDir dir;
  const auto path = dir / "i.mmi";
  write_index(path, three_rows());
  const std::string good = mm::read_file(path);
  for (size_t length = 0; length < good.size(); length += 7) {
    mm::write_file_atomic(path, good.substr(0, length));
    CHECK_THROWS_AS(DatasetIndex{path}, mm::DataError);
  }
  mm::write_file_atomic(path, good + std::string(64, '\0'));
  CHECK_THROWS_AS(DatasetIndex{path}, mm::DataError);
}
