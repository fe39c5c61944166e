#include "lib/base/log.h"

#include <doctest/doctest.h>

#include <regex>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "tests/base/temp_dir.h"

namespace mlog = mm::log;

TEST_CASE("log: one line an event, with UTC time, level, rank, module, sentence and fields") {
  const mm::test::TempDir dir;
  const std::string file = (dir / "log").string();
  mlog::configure({.level = mlog::Level::kWarn, .rank = 3, .file = file});
  mlog::info("data", "below the level");
  mlog::warn("data", "slow shard read", {{"shard", "00412"}, {"wait_ms", 318}});
  mlog::error("data", "two\nlines {}", {{"path", "a b\"c"}, {"empty", ""}});
  mlog::configure({.level = mlog::Level::kError});
  const std::regex expected(
      R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z warning rank=3 data: slow shard read shard=00412 wait_ms=318
\S+Z error rank=3 data: two\\nlines \{\} path="a b\\"c" empty=""
)");
  const std::string content = mm::read_file(file);
  CAPTURE(content);
  CHECK(std::regex_match(content, expected));
}

TEST_CASE("log: a file that cannot be opened is an IoError naming it") {
  const std::string message =
      mm::test::message_of<mm::IoError>([] { mlog::configure({.file = "/proc/no/such/log"}); });
  CHECK(message.starts_with("/proc/no/such/log: cannot open log: "));
}
