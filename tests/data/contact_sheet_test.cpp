#include "lib/data/contact_sheet.h"

#include <doctest/doctest.h>

#include "tests/data/tiny_dataset.h"
#include "tests/data/toy_source.h"

using namespace mm::data;
using namespace mm::data::test;

namespace {

size_t count(const std::string& text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE(
    "contact sheet: one page with pictures, texts and trained tokens, and nothing from outside") {
  const TempDir dir;
  mm::write_file_atomic(
      dir / "in.jsonl",
      mm::Json{{"id", "<b>&"}, {"image", "rgba.png"}, {"text", "a cat"}}.dump() + "\n");
  pack_dataset(toy_options(dir / "in.jsonl"), {.output = dir / "out"});
  const auto set = Dataset::open(dir / "out");
  const auto tokenizer = mm::text::load_tokenizer(toy_tokenizer());
  const std::string html = contact_sheet(*set, *tokenizer, spread_rows(set->rows(), 24));
  CHECK(count(html, "<article>") == 1);
  CHECK(count(html, "data:image/png;base64,") == 1);
  CHECK(count(html, "picture &times; 4") == 1);
  CHECK(count(html, "class=\"y\" title=\"11\">cat<") == 1);
  CHECK(count(html, "&lt;b&gt;&amp;") == 1);
  CHECK(count(html, "<b>") == 0);
  CHECK(count(html, "http") == 0);
}

TEST_CASE("contact sheet: a damaged sample shows why") {
  const TempDir dir;
  write_tiny_dataset(dir / "set", 4);
  const auto path = dir / "set/shard-00000.mms";
  std::string content = mm::read_file(path);
  content[60] ^= 1;
  mm::write_file_atomic(path, content);
  const auto tokenizer = mm::text::load_tokenizer(toy_tokenizer());
  const std::string html =
      contact_sheet(*Dataset::open(dir / "set"), *tokenizer, std::vector<uint64_t>{0, 1});
  CHECK(count(html, "class=\"bad\"") == 1);
  CHECK(count(html, "checksum mismatch") == 1);
}

TEST_CASE("spread_rows: from the first to the last, all if there are few") {
  CHECK(spread_rows(100, 3) == std::vector<uint64_t>{0, 49, 99});
  CHECK(spread_rows(2, 5) == std::vector<uint64_t>{0, 1});
  CHECK(spread_rows(9, 1) == std::vector<uint64_t>{0});
  CHECK(spread_rows(0, 5).empty());
}
