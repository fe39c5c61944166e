#include "lib/data/path_pattern.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "tests/data/tiny_dataset.h"

using namespace mm::data;
using namespace mm::data::test;
using Names = std::vector<std::string>;

TEST_CASE("pattern: braces as a shell expands them") {
  CHECK(expand_braces("a.tar") == Names{"a.tar"});
  CHECK(expand_braces("x{08..11}.tar") == Names{"x08.tar", "x09.tar", "x10.tar", "x11.tar"});
  CHECK(expand_braces("{2..0}") == Names{"2", "1", "0"});
  CHECK(expand_braces("{a,b{1..2}}/{c,d}") == Names{"a/c", "a/d", "b1/c", "b1/d", "b2/c", "b2/d"});
  CHECK(expand_braces("{a}{x..y}{") == Names{"{a}{x..y}{"});
  CHECK_THROWS_AS(expand_braces("{0..9999999}"), mm::UsageError);
  CHECK_THROWS_AS(expand_braces("{0..999}{0..999}{0..999}"), mm::UsageError);
}

TEST_CASE("pattern: files in the order of their bytes, a named one must be there") {
  const TempDir dir;
  for (const char* name : {"b", "a10", "a2", ".hidden", "odd{1}"})
    mm::write_file_atomic(dir / name, "x");
  const auto names = [&](const std::string& pattern) {
    Names found;
    for (const auto& path : expand_pattern(dir / pattern)) found.push_back(path.filename());
    return found;
  };
  CHECK(names("*") == Names{"a10", "a2", "b", "odd{1}"});
  CHECK(names("a?") == Names{"a2"});
  CHECK(names("{b,a*}") == Names{"b", "a10", "a2"});
  CHECK(names("z*").empty());
  CHECK_THROWS_WITH_AS(names("{b,c}"), doctest::Contains("no such file"), mm::IoError);
  CHECK(is_pattern(dir / "a*"));
  CHECK(!is_pattern(dir / "odd{1}"));
  CHECK(!is_pattern(dir / "b"));
}
