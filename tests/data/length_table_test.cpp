#include "lib/data/length_table.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "tests/data/length_sets.h"
#include "tests/data/tiny_dataset.h"

using namespace mm::data;
using namespace mm::data::test;

namespace {

LengthTable read_text(const std::string& text) {
  const TempDir dir;
  mm::write_file_atomic(dir / "l.csv", text);
  return read_lengths(dir / "l.csv");
}

}  // namespace

TEST_CASE("length table: the internvl file, gzip, by header") {
  const LengthTable table = read_lengths(internvl_file());
  CHECK(table.has_images);
  REQUIRE(table.sizes.size() == 70'706);
  CHECK(table.sizes[2].tokens == 1341);
  CHECK(table.sizes[2].images == 5);
}

TEST_CASE("length table: columns in any order, quotes, byte order mark, CRLF, blank lines") {
  const auto table = read_text(
      "\xEF\xBB\xBF"
      "images,\"tokens\",note\r\n1,20,\"a,\"\"b\"\"\"\r\n\r\n0,7,");
  REQUIRE(table.sizes.size() == 2);
  CHECK(table.sizes[0].tokens == 20);
  CHECK(table.sizes[0].images == 1);
  CHECK(table.sizes[1].tokens == 7);
  CHECK(!read_text("tokens\n5\n").has_images);
}

TEST_CASE("length table: what does not fit is refused with file and line") {
  for (const std::string text :
       {"", "length\n3\n", "tokens,tokens\n1,2\n", "tokens\n-1\n", "tokens\n1.5\n",
        "tokens\n99999999999\n", "images,tokens\n3\n", "tokens\n\"\"\n"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(read_text(text), mm::DataError);
  }
  CHECK_THROWS_AS(read_text("tokens\n" + std::string(2 << 20, '1')), mm::DataError);
  CHECK_THROWS_AS(read_lengths("/no/such/file.csv"), mm::IoError);
  const TempDir dir;
  const std::string good = mm::read_file(internvl_file());
  mm::write_file_atomic(dir / "cut.gz", good.substr(0, good.size() / 2));
  CHECK_THROWS_AS(read_lengths(dir / "cut.gz"), mm::DataError);
}

TEST_CASE("length table: cut lengths are those of packing with that maximum") {
  std::vector<SampleSize> sizes = {{.tokens = 5}, {.tokens = 9}, {.tokens = 12}};
  CHECK(cut_lengths(sizes, 9) == 1);
  CHECK(sizes[2].tokens == 9);
}
