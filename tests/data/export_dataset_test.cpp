#include "lib/data/export_dataset.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "tests/data/source_reading.h"
#include "tests/data/toy_source.h"

using namespace mm::data;
using namespace mm::data::test;
namespace fs = std::filesystem;

namespace {

/// A set of five captions, one of two pictures and one of none.
void pack_toy(const TempDir& dir, const std::string& name, const std::string& storage = "raw") {
  auto rows = good_rows(5);
  std::string text;
  for (const auto& [image, caption] : rows)
    text += mm::Json{{"image", image}, {"text", caption}}.dump() + "\n";
  text += R"({"id": "two", "image": ["rgba.png", "gray.jpg"], "text": "a cat and a dog"})"
          "\n";
  text += R"({"id": "none", "text": "no dog is red"})"
          "\n";
  mm::write_file_atomic(dir / "in.jsonl", text);
  PackOptions options = toy_options(dir / "in.jsonl");
  options.pictures.storage = storage;
  pack_dataset(options, {.output = dir / name});
}

ExportResult do_export(const TempDir& dir, const std::string& set, const std::string& out,
                       ExportKind kind) {
  const auto data = Dataset::open(dir / set);
  const auto tokenizer = mm::text::load_tokenizer(toy_tokenizer());
  return export_dataset(*data, *tokenizer, {.kind = kind, .output = dir / out, .tar_bytes = 1500});
}

/// Text and pixels of all samples by key... keys are lost in tars, so by row.
void check_equal(const fs::path& left, const fs::path& right) {
  const auto a = Dataset::open(left), b = Dataset::open(right);
  REQUIRE(a->rows() == b->rows());
  for (uint64_t row = 0; row < a->rows(); ++row) {
    const auto x = a->read(row), y = b->read(row);
    REQUIRE(x.ok());
    REQUIRE(y.ok());
    CHECK(x->text == y->text);
    CHECK(x->pixels == y->pixels);
  }
}

}  // namespace

TEST_CASE("export: what is packed again from tars or a folder is the same set") {
  const TempDir dir;
  pack_toy(dir, "set");
  const auto tars = do_export(dir, "set", "tars", ExportKind::kWebdataset);
  CHECK(tars.samples == 7);
  CHECK(tars.pictures == 7);
  CHECK(tars.files > 1);
  do_export(dir, "set", "folder", ExportKind::kFolder);
  PackOptions options = toy_options(dir / "unused");
  options.pictures.geometry = "squash";
  options.source = {.kind = SourceKind::kWebdataset, .path = dir / "tars/*.tar"};
  pack_dataset(options, {.output = dir / "from-tars"});
  check_equal(dir / "set", dir / "from-tars");
  options.source = {.kind = SourceKind::kFolder, .path = dir / "folder"};
  pack_dataset(options, {.output = dir / "from-folder"});
  check_equal(dir / "set", dir / "from-folder");
}

TEST_CASE("export: equal sets give equal bytes, nothing half-written is left, keys are kept") {
  const TempDir dir;
  pack_toy(dir, "set");
  do_export(dir, "set", "one", ExportKind::kWebdataset);
  do_export(dir, "set", "two", ExportKind::kWebdataset);
  CHECK(contents(dir / "one") == contents(dir / "two"));
  CHECK(!fs::exists(dir / "one.partial"));
  CHECK_THROWS_AS(do_export(dir, "set", "one", ExportKind::kFolder), mm::UsageError);
  do_export(dir, "set", "folder", ExportKind::kFolder);
  const std::string rows = mm::read_file(dir / "folder/metadata.jsonl");
  CHECK(rows.find("\"id\":\"two\"") != std::string::npos);
  CHECK(rows.find("\"no dog is red\"") != std::string::npos);
}

TEST_CASE("export: stored JPEG comes out byte for byte") {
  const TempDir dir;
  pack_toy(dir, "set", "jpeg");
  do_export(dir, "set", "folder", ExportKind::kFolder);
  size_t pictures = 0;
  for (const auto& [name, content] : contents(dir / "folder")) {
    if (!name.ends_with(".jpg")) continue;
    ++pictures;
    CHECK(content.starts_with("\xff\xd8"));
    bool found = false;
    for (const auto& [shard, bytes] : contents(dir / "set"))
      found = found || bytes.find(content) != std::string::npos;
    CHECK(found);
  }
  CHECK(pictures == 7);
}
