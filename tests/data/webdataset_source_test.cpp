#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/data/dataset.h"
#include "lib/data/pack_dataset.h"
#include "tests/data/source_reading.h"
#include "tests/data/tar_writer.h"
#include "tests/data/toy_source.h"

using namespace mm::data;
using namespace mm::data::test;
namespace fs = std::filesystem;

namespace {

SourceOptions tar(const fs::path& path) { return {.kind = SourceKind::kWebdataset, .path = path}; }

/// Rows of a tar that `write` fills.
template <typename Write>
std::vector<SourceItem> read_tar(const Write& write, TarKind kind = TarKind::kUstar,
                                 TarFilter filter = TarFilter::kNone) {
  const TempDir dir;
  TarWriter writer(dir / "in.tar", kind, filter);
  write(writer);
  writer.close();
  return read_all(tar(dir / "in.tar"));
}

std::string content_of(const SourceItem& item, size_t i = 0) {
  const auto* content = record(item).content(i);
  return content == nullptr ? "(none)" : *content;
}

}  // namespace

TEST_CASE("webdataset: plain, gzip and zstd; ustar, PAX, GNU and V7") {
  for (const TarKind kind : {TarKind::kUstar, TarKind::kPax, TarKind::kGnu, TarKind::kV7}) {
    for (const TarFilter filter : {TarFilter::kNone, TarFilter::kGzip, TarFilter::kZstd}) {
      const auto rows = read_tar(
          [](TarWriter& out) {
            out.add("000.jpg", "picture 0").add("000.txt", " a cat \n");
            out.add("001.jpg", "picture 1").add("001.txt", "a dog");
          },
          kind, filter);
      REQUIRE(rows.size() == 2);
      CHECK(record(rows[0]).key == "000");
      CHECK(record(rows[0]).images == std::vector<std::string>{"000.jpg"});
      CHECK(content_of(rows[0]) == "picture 0");
      CHECK(answer(rows[0]) == "a cat");
      CHECK(content_of(rows[1]) == "picture 1");
      CHECK(record(rows[1]).row == 1);
    }
  }
}

TEST_CASE("webdataset: the key ends at the first dot of the last part, suffixes in any case") {
  const auto rows = read_tar([](TarWriter& out) {
    out.add("./a.b/22.05.PNG", "p").add("./a.b/22.TXT", "t");
    out.add("plain.cls", "3").add("README", "x");
    out.add("a.b/23.0.jpg", "p0").add("a.b/23.1.jpg", "p1").add("a.b/23.txt", "two");
  });
  CHECK(kinds_of(rows) == std::vector<std::string>{"", "no_caption", "no_caption", ""});
  CHECK(record(rows[0]).key == "a.b/22");
  CHECK(record(rows[3]).images == std::vector<std::string>{"a.b/23.0.jpg", "a.b/23.1.jpg"});
  CHECK(content_of(rows[3], 1) == "p1");
}

TEST_CASE("webdataset: img2dataset's json, json captions and conversations") {
  const auto rows = read_tar([](TarWriter& out) {
    out.add("0.jpg", "p").add("0.json", R"({"caption": "from json", "url": "http://x/y.jpg",
      "key": "0", "status": "success", "exif": "{}", "width": 5})");
    out.add("1.jpg", "p").add("1.txt", "from txt").add("1.json", R"({"caption": "json"})");
    out.add("2.jpg", "p").add("2.json", R"({"image": "other/name.jpg", "conversations":
      [{"from": "human", "value": "<image>\nq"}, {"from": "gpt", "value": "a"}]})");
    out.add("3.json", R"({"messages": [{"role": "user", "content": "q"},
      {"role": "assistant", "content": "no picture"}]})");
    out.add("4.jpg", "p").add("4.json", "{broken");
    out.add("5.jpg", "p").add("5.json", "[]");
  });
  CHECK(kinds_of(rows) == std::vector<std::string>{"", "", "", "", "bad_json", "bad_row"});
  CHECK(answer(rows[0]) == "from json");
  CHECK(answer(rows[1]) == "from txt");
  CHECK(record(rows[2]).images == std::vector<std::string>{"2.jpg"});
  CHECK(content_of(rows[2]) == "p");
  CHECK(record(rows[3]).images.empty());
}

TEST_CASE("webdataset: the orientation that a json tells stands in for a lost tag") {
  const auto rows = read_tar([](TarWriter& out) {
    const auto add = [&](const std::string& key, const std::string& exif) {
      out.add(key + ".jpg", "p");
      out.add(key + ".json", mm::Json{{"caption", "c"}, {"exif", exif}}.dump());
    };
    const auto tag = [](const char* words) {
      return mm::Json{{"Image Orientation", words}}.dump();
    };
    add("0", tag("Rotated 90 CW"));
    add("1", tag("Horizontal (normal)"));
    add("2", R"({"Image Orientation": 7})");
    add("3", "{cut");
    add("4", tag("Rotated 90 CCW"));
  });
  std::vector<int> told;
  for (const auto& row : rows) told.push_back(record(row).orientation);
  CHECK(told == std::vector<int>{6, 1, 1, 1, 8});
}

TEST_CASE("webdataset: duplicate members, links, lone captions and other bytes are entries") {
  const auto rows = read_tar([](TarWriter& out) {
    out.add("a.jpg", "p").add("a.jpg", "q").add("a.txt", "t");
    out.add("b.jpg", "p").add("b.txt", "\xff");
    out.add("c.txt", "no picture");
    out.add("d.jpg", "p");
    out.add_link("e.jpg", "a.jpg", true).add("e.txt", "t");
    out.add("f.jpg", "p").add("f.txt", "good");
  });
  CHECK(kinds_of(rows) == std::vector<std::string>{"duplicate_member", "bad_utf8", "bad_row",
                                                   "no_caption", "bad_row", ""});
}

TEST_CASE("webdataset: directories and AppleDouble files are passed over, long names are whole") {
  const std::string name = std::string(150, 'd') + "/" + std::string(120, 'n');
  for (const TarKind kind : {TarKind::kPax, TarKind::kGnu}) {
    const auto rows = read_tar(
        [&](TarWriter& out) {
          out.add_directory("d/");
          out.add("d/._a.jpg", "resource fork").add("d/a.jpg", "p").add("d/._a.txt", "fork");
          out.add("d/a.txt", "t");
          out.add(name + ".jpg", "p").add(name + ".txt", "long");
          out.add(
                 "donn\xC3\xA9"
                 "es.jpg",
                 "p")
              .add(
                  "donn\xC3\xA9"
                  "es.txt",
                  "accent");
        },
        kind);
    CHECK(keys_of(rows) == std::vector<std::string>{"d/a", name, "données"});
  }
}

TEST_CASE("webdataset: a cut tar loses its last sample and says so") {
  const TempDir dir;
  TarWriter writer(dir / "in.tar");
  writer.add("a.jpg", "p").add("a.txt", "t").add("b.jpg", std::string(5000, 'x')).add("b.txt", "t");
  writer.close();
  fs::resize_file(dir / "in.tar", 512 * 5 + 1000);  // inside b.jpg
  const auto rows = read_all(tar(dir / "in.tar"));
  CHECK(kinds_of(rows) == std::vector<std::string>{"", "truncated"});
  const auto& entry = std::get<LedgerEntry>(rows[1]);
  CHECK(entry.key == "b");
  CHECK(!entry.skipped);
}

TEST_CASE("webdataset: a file that is no tar is an error that names it") {
  const TempDir dir;
  mm::write_file_atomic(dir / "in.tar", "this is not a tar at all");
  CHECK_THROWS_WITH_AS(read_all(tar(dir / "in.tar")), doctest::Contains("in.tar"), mm::DataError);
  CHECK_THROWS_AS(read_all(tar(dir / "none.tar")), mm::IoError);
}

TEST_CASE(
    "webdataset: several tars by a pattern pack to the same set as a folder, no file between") {
  const TempDir dir;
  fs::create_directories(dir / "folder");
  const std::vector<std::string> pictures = {"rgba.png", "gray.jpg", "palette.png", "thin.png"};
  for (int shard = 0; shard < 2; ++shard) {
    TarWriter writer(dir / fmt::format("{:02}.tar", shard));
    for (int i = 0; i < 2; ++i) {
      const std::string picture = pictures[static_cast<size_t>(2 * shard + i)];
      const std::string content = mm::read_file(field_picture(picture));
      const std::string stem = fmt::format("{}{}", shard, i);
      const std::string caption = toy_caption(static_cast<uint32_t>(10 + 2 * shard + i));
      writer.add(stem + ".png", content).add(stem + ".txt", caption);
      mm::write_file_atomic(dir / ("folder/" + stem + ".png"), content);
      mm::write_file_atomic(dir / ("folder/" + stem + ".txt"), caption);
    }
    writer.close();
  }
  PackOptions options = toy_options(dir / "unused");
  options.source = tar(dir / "{00..01}.tar");
  pack_dataset(options, {.output = dir / "from-tar"});
  options.source = {.kind = SourceKind::kFolder, .path = dir / "folder"};
  pack_dataset(options, {.output = dir / "from-folder"});
  const auto a = Dataset::open(dir / "from-tar"), b = Dataset::open(dir / "from-folder");
  REQUIRE(a->rows() == 4);
  for (uint64_t row = 0; row < 4; ++row) {
    const auto left = a->read(row), right = b->read(row);
    REQUIRE(left.ok());
    REQUIRE(right.ok());
    CHECK(left->text == right->text);
    CHECK(left->pixels == right->pixels);
  }
}
