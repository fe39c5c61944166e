#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/data/folder_listing.h"
#include "tests/data/source_reading.h"
#include "tests/data/tar_writer.h"

using namespace mm::data;
using namespace mm::data::test;
namespace fs = std::filesystem;

namespace {

/// A folder with these files; `content` may be empty.
void fill(const TempDir& dir, const std::vector<std::pair<std::string, std::string>>& files) {
  for (const auto& [name, content] : files) {
    fs::create_directories((dir / name).parent_path());
    mm::write_file_atomic(dir / name, content);
  }
}

SourceOptions folder(const TempDir& dir) {
  return {.kind = SourceKind::kFolder, .path = dir.path()};
}

}  // namespace

TEST_CASE("folder: .caption stands in for .txt, .txt goes first") {
  const TempDir dir;
  fill(dir, {{"a.png", "x"},
             {"a.caption", "of a"},
             {"b.png", "x"},
             {"b.txt", "txt"},
             {"b.caption", "caption"}});
  const auto rows = read_all(folder(dir));
  CHECK(answer(rows[0]) == "of a");
  CHECK(answer(rows[1]) == "txt");
}

TEST_CASE("folder: of pictures that share a stem the first is taken, the others are named") {
  const TempDir dir;
  fill(dir, {{"a.jpg", "x"}, {"a.png", "x"}, {"a.txt", "one"}, {"b.jpg", "x"}, {"b.png", "x"}});
  const auto rows = read_all(folder(dir));
  CHECK(kinds_of(rows) ==
        std::vector<std::string>{"", "stem_collision", "no_caption", "no_caption"});
  CHECK(std::get<LedgerEntry>(rows[1]).message.starts_with("a.jpg has the same stem"));
  CHECK(!std::get<LedgerEntry>(rows[1]).skipped);
}

TEST_CASE("folder: metadata.jsonl and metadata.csv name the pictures, others are not looked at") {
  const TempDir dir;
  fill(dir, {{"a.png", "x"},
             {"b.png", "x"},
             {"metadata.jsonl", "{\"file_name\": \"b.png\", \"text\": \"of b\"}\n"}});
  const auto rows = read_all(folder(dir));
  REQUIRE(rows.size() == 1);
  CHECK(record(rows[0]).key == "b.png");
  CHECK(answer(rows[0]) == "of b");
  fs::remove(dir / "metadata.jsonl");
  fill(dir, {{"metadata.csv", "file_name,text\na.png,of a\n"}});
  CHECK(answer(read_all(folder(dir))[0]) == "of a");
  CHECK(sniff_source(dir.path()) == SourceKind::kFolder);
}

TEST_CASE("folder: kohya's names repeat, stand in for captions and take the first line") {
  const TempDir dir;
  fill(dir, {{"3_black cat/a.png", "x"},
             {"3_black cat/a.txt", "first\nsecond"},
             {"3_black cat/b.png", "x"},
             {"dogs/c.png", "x"}});
  SourceOptions options = folder(dir);
  options.kohya = true;
  const auto rows = read_all(options);
  REQUIRE(rows.size() == 7);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(record(rows[i]).key == "3_black cat/a.png");
    CHECK(answer(rows[i]) == "first");
    CHECK(record(rows[i]).repeat == i);
    CHECK(record(rows[i]).row == i);
    CHECK(answer(rows[3 + i]) == "black cat");
  }
  CHECK(answer(rows[6]) == "dogs");
  options.kohya = false;
  CHECK(kinds_of(read_all(options)) == std::vector<std::string>{"", "no_caption", "no_caption"});
}

TEST_CASE("folder: what counts as a kohya name") {
  CHECK(kohya_name("10_cat").repeats == 10);
  CHECK(kohya_name("10_cat").words == "cat");
  CHECK(kohya_name("5_a_b").words == "a_b");
  for (const char* plain : {"cat", "_cat", "0_cat", "1x_cat", "99999_cat", "-1_cat", ""}) {
    CHECK(kohya_name(plain).repeats == 1);
    CHECK(kohya_name(plain).words == plain);
  }
}

TEST_CASE("source: a folder of tars or tables is read file by file") {
  const TempDir dir;
  fs::create_directories(dir / "tars");
  for (const char* name : {"00001", "00000"})
    TarWriter(dir / "tars" / (std::string(name) + ".tar")).add(std::string(name) + ".txt", "a");
  mm::write_file_atomic(dir / "tars/00000_stats.json", "{}");
  CHECK(sniff_source(dir / "tars") == SourceKind::kWebdataset);
  const SourceOptions tars{.kind = SourceKind::kWebdataset, .path = dir / "tars"};
  CHECK(source_files(tars) ==
        std::vector<fs::path>{dir / "tars/00000.tar", dir / "tars/00001.tar"});
  CHECK(read_all(tars).size() == 2);
  mm::write_file_atomic(dir / "tars/a.png", "x");
  CHECK(sniff_source(dir / "tars") == SourceKind::kFolder);

  fs::create_directories(dir / "rows");
  mm::write_file_atomic(dir / "rows/b.jsonl", R"({"image": "x.png", "text": "b"})");
  mm::write_file_atomic(dir / "rows/a.jsonl", R"({"image": "x.png", "text": "a"})");
  const SourceOptions rows{.kind = SourceKind::kJsonl, .path = dir / "rows"};
  const auto items = read_all(rows);
  REQUIRE(items.size() == 2);
  CHECK(answer(items[0]) == "a");
  CHECK(rows.root() == dir / "rows");
  CHECK_THROWS_AS(read_all({.kind = SourceKind::kParquet, .path = dir / "rows"}), mm::IoError);
}
