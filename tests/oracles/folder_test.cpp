#include "tools/mm_oracle/folder.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "tests/base/temp_dir.h"

using namespace mm::oracle;
using mm::test::TempDir;

namespace {

Folder folder_of(const TempDir& directory, const std::string& expected) {
  mm::write_file_atomic(directory.path() / "expected.json", expected);
  return Folder(directory.path());
}

}  // namespace

TEST_CASE("what nobody looked at is listed, an array is one leaf unless it holds objects") {
  const TempDir directory;
  Folder folder = folder_of(
      directory, R"({"what": "x", "a": {"b": 1, "c": [1, 2]}, "rows": [{"d": 1}, {"d": 2}]})");
  using Names = std::vector<std::string>;
  CHECK(folder.untouched() == Names{"what", "a/b", "a/c", "rows/0/d", "rows/1/d"});
  CHECK(folder.number("a/b") == 1);
  CHECK(folder.number("rows/1/d") == 2);
  folder.set_aside({"what"});
  CHECK(folder.untouched() == Names{"a/c", "rows/0/d"});
  folder.take("a");
  CHECK(folder.untouched() == Names{"rows/0/d"});
  CHECK(folder.count("rows") == 2);
  CHECK(folder.keys("a") == Names{"b", "c"});
}

TEST_CASE("a missing or mistyped value is refused by path") {
  const TempDir directory;
  Folder folder = folder_of(directory, R"({"a": {"b": "word"}, "n": [1, "2"]})");
  CHECK_THROWS_WITH_AS(folder.take("a/x"), doctest::Contains("no a/x"), mm::DataError);
  CHECK_THROWS_WITH_AS(folder.number("a/b"), doctest::Contains("a/b is not a number"),
                       mm::DataError);
  CHECK_THROWS_WITH_AS(folder.numbers("n"), doctest::Contains("n is not a list of numbers"),
                       mm::DataError);
  CHECK_THROWS_WITH_AS(folder.words("n"), doctest::Contains("n is not a list of strings"),
                       mm::DataError);
  CHECK_THROWS_AS(folder.keys("n"), mm::DataError);
  CHECK_THROWS_AS(folder.count("a"), mm::DataError);
  CHECK_THROWS_WITH_AS(folder.tensor("logits"), doctest::Contains("no io.safetensors"),
                       mm::DataError);
  CHECK(!folder.has("n/00000000000000000009"));
}

TEST_CASE("a folder without expected.json, or with one that is no object, is refused") {
  const TempDir directory;
  CHECK_THROWS_AS(Folder(directory.path()), mm::Error);
  CHECK_THROWS_AS(folder_of(directory, "[1]"), mm::DataError);
  CHECK_THROWS_AS(folder_of(directory, "{"), mm::DataError);
}
