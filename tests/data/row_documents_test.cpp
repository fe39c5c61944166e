#include "lib/data/row_documents.h"

#include <doctest/doctest.h>

#include "lib/base/json.h"
#include "tests/data/source_reading.h"

using namespace mm::data;
using namespace mm::data::test;
namespace fs = std::filesystem;

namespace {

/// Turns as text, for comparing.
std::vector<std::string> texts_of(const mm::text::Conversation& conversation) {
  std::vector<std::string> texts;
  for (const auto& turn : conversation.turns) texts.push_back(turn.text);
  return texts;
}

SourceItem read(std::string_view json) { return record_from_text(json, "test", 0); }

constexpr std::string_view kMmc4 =
    R"({"url": "http://page", "text_list": ["One.", "Two.", "Three."],
  "image_info": [{"image_name": "c.jpg", "matched_text_index": 2, "raw_url": "http://x"},
                 {"image_name": "a.jpg", "matched_text_index": 0},
                 {"image_name": null, "matched_text_index": 1},
                 {"image_name": "d.jpg", "matched_text_index": 2}],
  "similarity_matrix": [[0.1]]})";

}  // namespace

TEST_CASE("mmc4: pictures stand before their sentence, never fetched ones are left out") {
  const auto item = read(kMmc4);
  const Record& row = record(item);
  CHECK(row.conversation.document);
  CHECK(row.conversation.images == 3);
  CHECK(row.images == std::vector<std::string>{"a.jpg", "c.jpg", "d.jpg"});
  CHECK(texts_of(row.conversation) ==
        std::vector<std::string>{"<image>", "One. Two.", "<image>", "<image>", "Three."});
}

TEST_CASE("mmc4: an index beyond the text, or no text at all, is a bad row") {
  CHECK(kind_of(read(R"({"text_list": ["a"], "image_info": [{"image_name": "x",
    "matched_text_index": 1}]})")) == "bad_row");
  CHECK(kind_of(read(R"({"text_list": ["a"], "image_info": [{"image_name": "x",
    "matched_text_index": -1}]})")) == "bad_row");
  CHECK(kind_of(read(R"({"text_list": [5], "image_info": []})")) == "bad_row");
  CHECK(kind_of(read(R"({"text_list": [], "image_info": []})")) == "empty_caption");
  CHECK(kind_of(read(R"({"text_list": "x", "image_info": [3]})")) == "bad_row");
}

TEST_CASE("obelics: exactly one of text and picture at each index, paragraphs stay apart") {
  const auto item = read(R"({"texts": ["One.", null, "Two.", "Three."],
    "images": [null, {"bytes": "Zm9v", "path": null}, null, null], "metadata": "[]"})");
  const Record& row = record(item);
  CHECK(texts_of(row.conversation) ==
        std::vector<std::string>{"One.", "<image>", "Two.\n\nThree."});
  REQUIRE(row.content(0) != nullptr);
  CHECK(*row.content(0) == "foo");
  for (const char* bad :
       {R"({"texts": ["a", null], "images": [null, null]})", R"({"texts": ["a"], "images": ["b"]})",
        R"({"texts": ["a"], "images": []})", R"({"texts": [5], "images": [null]})"}) {
    CHECK(kind_of(read(bad)) == "bad_row");
  }
}

TEST_CASE("documents: pictures without a file leave the text, each named in a skipped entry") {
  const TempDir dir;
  mm::write_file_atomic(dir / "c.jpg", "x");
  std::string line(kMmc4);
  std::replace(line.begin(), line.end(), '\n', ' ');
  mm::write_file_atomic(
      dir / "in.jsonl",
      line + "\n" + R"({"texts": ["t", null], "images": [null, "https://host/p.png"]})" + "\n");
  const auto items = read_all({.kind = SourceKind::kJsonl, .path = dir / "in.jsonl"});
  CHECK(kinds_of(items) == std::vector<std::string>{"missing", "missing", "", "missing", ""});
  const auto& entry = std::get<LedgerEntry>(items[0]);
  CHECK(entry.skipped);
  CHECK(entry.path == "a.jpg");
  CHECK(record(items[2]).images == std::vector<std::string>{"c.jpg"});
  CHECK(texts_of(record(items[2]).conversation) ==
        std::vector<std::string>{"One. Two.", "<image>", "Three."});
  CHECK(record(items[2]).row == 0);
  CHECK(record(items[4]).images.empty());
  CHECK(record(items[4]).conversation.images == 0);
}

TEST_CASE("documents: a picture outside the root stays, so that the row is refused and named") {
  const TempDir dir;
  Record row = record(read(R"({"texts": ["t", null], "images": [null, "../secret.png"]})"));
  CHECK(drop_missing_pictures(row, dir.path(), Links::kInsideRoot).empty());
  CHECK(row.images.size() == 1);
}
