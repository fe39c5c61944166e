#include "lib/data/bad_sample_ledger.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "tests/data/tiny_dataset.h"

using namespace mm::data;
using namespace mm::data::test;

namespace {

std::vector<LedgerEntry> bad(size_t count) {
  std::vector<LedgerEntry> entries;
  for (size_t i = 0; i < count; ++i)
    entries.push_back({i, fmt::format("k{}", i), "p.png", "truncated", "ends early"});
  return entries;
}

}  // namespace

TEST_CASE("ledger: entries come back, quotes, line ends and broken bytes included") {
  const TempDir dir;
  const std::vector<LedgerEntry> entries = {{3, "a \"b\"\n", "x/é.png", "corrupt", "line\nbreak"},
                                            {UINT64_MAX, "k", "", "no_caption", "\xff", true},
                                            {9, "w", "p.jpg", "stray_bytes", "m", false, true}};
  write_ledger(dir / "l", entries);
  const auto read = read_ledger(dir / "l");
  REQUIRE(read.size() == 3);
  CHECK(read[0].key == entries[0].key);
  CHECK(read[0].message == "line\nbreak");
  CHECK(!read[0].skipped);
  CHECK(read[1].row == UINT64_MAX);
  CHECK(read[1].fate() == Fate::kSkipped);
  CHECK(read[2].fate() == Fate::kWarned);
  mm::write_file_atomic(dir / "l", mm::read_file(dir / "l") + "{}\n");
  CHECK_THROWS_WITH_AS(read_ledger(dir / "l"), doctest::Contains("line 4"), mm::DataError);
}

TEST_CASE("bad limit: at the limit is good, above names up to twenty, skipped ones do not count") {
  CHECK_NOTHROW(check_bad_limit(bad(5), 95, 0.05));
  CHECK_NOTHROW(check_bad_limit({}, 0, 0));
  CHECK_THROWS_WITH_AS(check_bad_limit(bad(6), 94, 0.05),
                       doctest::Contains("row 5 (p.png): truncated: ends early"), mm::DataError);
  CHECK_THROWS_WITH_AS(check_bad_limit(bad(25), 75, 0.1), doctest::Contains("and 5 more"),
                       mm::DataError);
  auto skipped = bad(50);
  for (LedgerEntry& entry : skipped) entry.skipped = true;
  CHECK_NOTHROW(check_bad_limit(skipped, 1, 0));
  for (LedgerEntry& entry : skipped) entry = {.kind = "stray_bytes", .warned = true};
  CHECK_NOTHROW(check_bad_limit(skipped, 1, 0));
}

TEST_CASE(
    "ledger kinds: bad, skipped and warned are counted apart, the most frequent comes first") {
  auto entries = bad(3);
  entries.push_back({.kind = "corrupt"});
  entries.push_back({.kind = "bad_json"});
  entries.push_back({.kind = "no_caption", .skipped = true});
  entries.push_back({.kind = "stray_bytes", .warned = true});
  CHECK(describe_kinds(count_kinds(entries, Fate::kBad)) == "truncated 3, bad_json 1, corrupt 1");
  CHECK(describe_kinds(count_kinds(entries, Fate::kSkipped)) == "no_caption 1");
  CHECK(describe_kinds(count_kinds(entries, Fate::kWarned)) == "stray_bytes 1");
  CHECK(describe_kinds({}).empty());
  CHECK_THROWS_WITH_AS(check_bad_limit(entries, 1, 0.5),
                       doctest::Contains("the limit is 50 %: truncated 3, bad_json 1, corrupt 1;"),
                       mm::DataError);
}
