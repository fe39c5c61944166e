#include "lib/data/json_array_reader.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "tests/data/tiny_dataset.h"

using namespace mm::data;
using namespace mm::data::test;

namespace {

std::vector<std::string> elements_of(std::string_view text) {
  const TempDir dir;
  mm::write_file_atomic(dir / "in", text);
  JsonArrayReader reader(dir / "in");
  std::vector<std::string> elements;
  for (std::string element; reader.next(element);) {
    CHECK(text.substr(reader.element_offset(), element.size()) == element);
    elements.push_back(element);
  }
  return elements;
}

}  // namespace

TEST_CASE("json array: a broken one ends with the byte at which it breaks") {
  for (const char* text : {"", "{}", "[", "[{}", "[{},", "[{},]", "[,{}]", "[{\"a\": \"b", "[{}]x",
                           "[}]", "[{\"a\":\"\\"}) {
    CHECK_THROWS_WITH_AS(elements_of(text), doctest::Contains("byte"), mm::DataError);
  }
  CHECK(elements_of("[]").empty());
}

TEST_CASE("json array: elements across block borders are whole, with their offsets") {
  std::string text = " [";
  std::vector<std::string> expected;
  for (int i = 0; i < 12; ++i) {
    expected.push_back(
        fmt::format("{{\"id\": {}, \"t\": \"]}}{}\"}}", i, std::string(300'000, 'x')));
    text += (i ? ",\n" : "") + expected.back();
  }
  CHECK(elements_of(text + "]") == expected);
}

TEST_CASE("json array: what is inside an element is not looked at") {
  CHECK(elements_of("[1, \"a,]\\\"\", {\"b\": [2]} ,null]") ==
        std::vector<std::string>{"1", "\"a,]\\\"\"", "{\"b\": [2]} ", "null"});
  CHECK(elements_of("[{} {}]") == std::vector<std::string>{"{} {}"});
}
