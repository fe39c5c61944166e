#include "lib/data/key_filter.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "tests/data/tiny_dataset.h"

using namespace mm::data;
using namespace mm::data::test;

TEST_CASE("key filter: lists, exclusions, what was never seen") {
  const TempDir dir;
  mm::write_file_atomic(dir / "ids", "a\nb\n\n");
  mm::write_file_atomic(dir / "twice", "a\na\n");
  const auto item = [](const char* key) { return SourceItem(Record{.key = key}); };
  KeyFilter filter(dir / "ids", {});
  CHECK(filter.keep(item("a")));
  CHECK(!filter.keep(item("c")));
  CHECK(filter.left_out() == 1);
  CHECK_THROWS_WITH_AS(filter.check_all_seen(), doctest::Contains("1 of 2 keys"), mm::DataError);
  CHECK(filter.keep(item("b")));
  CHECK_NOTHROW(filter.check_all_seen());
  KeyFilter without({}, dir / "ids");
  CHECK(!without.keep(item("a")));
  CHECK(without.keep(item("z")));
  CHECK_THROWS_WITH_AS(KeyFilter(dir / "twice", {}), doctest::Contains("listed twice"),
                       mm::DataError);
}
