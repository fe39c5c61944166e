#include "lib/data/text_stream.h"

#include <doctest/doctest.h>

#include "lib/base/file.h"
#include "tests/data/tiny_dataset.h"

using namespace mm::data;
using namespace mm::data::test;

TEST_CASE("text stream: lines with either end, without a last one, across blocks") {
  const TempDir dir;
  const std::string long_line(3'000'000, 'y');
  mm::write_file_atomic(dir / "t", "a\r\n\nb\n" + long_line + "\nlast");
  TextStream in(dir / "t");
  std::vector<std::string> lines;
  for (std::string line; read_line(in, line);) lines.push_back(line);
  CHECK(lines == std::vector<std::string>{"a", "", "b", long_line, "last"});
}
