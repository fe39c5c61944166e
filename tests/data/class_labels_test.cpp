#include "lib/data/class_labels.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/data/dataset.h"
#include "lib/text/label_names.h"
#include "tests/data/source_reading.h"
#include "tests/data/tar_writer.h"
#include "tests/data/tiny_dataset.h"
#include "tests/data/toy_source.h"

using namespace mm::data;
using namespace mm::data::test;

namespace {

/// Options for rows of `text` in in.`extension`.
PackOptions label_options(const TempDir& dir, const std::string& text, SourceKind kind) {
  const auto path = dir / (kind == SourceKind::kCsv ? "in.csv" : "in.jsonl");
  mm::write_file_atomic(path, text);
  PackOptions options = toy_options(path);
  options.source.kind = kind;
  options.source.labels = "label";
  options.tokenizer.clear();
  options.pictures.geometry = "buckets";
  options.pictures.buckets = "8x8";
  return options;
}

/// Class ids by source row.
std::vector<int32_t> classes_of(const std::filesystem::path& set) {
  const auto data = Dataset::open(set);
  std::vector<int32_t> ids(data->rows());
  for (uint64_t row = 0; row < data->rows(); ++row) {
    const auto tokens = data->read(row)->text.tokens;
    REQUIRE(tokens.size() == 1);
    ids[data->index().row(row).source_row] = tokens[0];
  }
  return ids;
}

}  // namespace

TEST_CASE("labels: names of a column become ids in the order of their bytes") {
  const TempDir dir;
  const PackOptions options = label_options(dir,
                                            R"({"image": "rgba.png", "label": "dog"}
{"image": "thin.png", "label": "cat"}
{"image": "gray.jpg", "label": "dog", "caption": "not read"}
)",
                                            SourceKind::kJsonl);
  const PackResult result = pack_dataset(options, {.output = dir / "set", .threads = 1});
  CHECK(classes_of(dir / "set") == std::vector<int32_t>{1, 0, 1});
  const TokenizerEntry& entry = result.manifest.tokenizer;
  CHECK(entry.kind == "labels");
  CHECK(entry.vocab_size == 2);
  CHECK(entry.classes == std::vector<std::string>{"cat", "dog"});
  CHECK(entry.image_token_id == -1);
  const auto read = read_manifest(dir / "set");
  CHECK(read.tokenizer.classes == entry.classes);
  const auto names = mm::text::load_tokenizer(dir / "set" / entry.file.file);
  CHECK(names->decode(std::vector<int32_t>{1, 0}) == "dog, cat");
}

TEST_CASE("labels: whole numbers stand for themselves, in tables too") {
  const TempDir dir;
  const PackOptions options =
      label_options(dir, "image,label\nrgba.png,3\nthin.png,0\ngray.jpg,10\n", SourceKind::kCsv);
  CHECK(class_names_of(options).size() == 11);
  pack_dataset(options, {.output = dir / "set", .threads = 1});
  CHECK(classes_of(dir / "set") == std::vector<int32_t>{3, 0, 10});
}

TEST_CASE("labels: names from a file; numbers mean its lines; others are refused") {
  const TempDir dir;
  PackOptions options = label_options(dir,
                                      R"({"image": "rgba.png", "label": 1}
{"image": "thin.png", "label": "cat"}
{"image": "gray.jpg", "label": "bird"}
{"image": "gray.jpg"}
{"image": "gray.jpg", "label": [1]}
)",
                                      SourceKind::kJsonl);
  mm::write_file_atomic(dir / "names.txt", "cat\ndog\n");
  options.class_names = dir / "names.txt";
  const PackResult result =
      pack_dataset(options, {.output = dir / "set", .threads = 1, .bad_limit = 0.9});
  CHECK(result.manifest.counts.samples == 2);
  const std::string ledger = mm::read_file(dir / "set/ledger.jsonl");
  for (const char* kind : {"unknown_label", "no_label", "bad_row"})
    CHECK(ledger.find(kind) != std::string::npos);
  mm::write_file_atomic(dir / "names.txt", "cat\n\ndog\n");
  CHECK_THROWS_WITH_AS(class_names_of(options), doctest::Contains("line 2"), mm::DataError);
  mm::write_file_atomic(dir / "names.txt", "cat\ncat\n");
  CHECK_THROWS_AS(class_names_of(options), mm::DataError);
}

TEST_CASE("labels: folders name the classes of their pictures, without captions") {
  const TempDir dir;
  for (const char* name : {"b/one.png", "b/two.png", "a/deep/one.png"}) {
    std::filesystem::create_directories((dir / name).parent_path());
    std::filesystem::copy_file(field_picture("rgba.png"), dir / name);
  }
  PackOptions options = label_options(dir, "", SourceKind::kJsonl);
  options.source = {.kind = SourceKind::kFolder, .path = dir.path(), .labels = "folder"};
  pack_dataset(options, {.output = dir / "set", .threads = 1});
  CHECK(read_manifest(dir / "set").tokenizer.classes == std::vector<std::string>{"b", "deep"});
  CHECK(classes_of(dir / "set") == std::vector<int32_t>{1, 0, 0});
}

TEST_CASE("labels: a member .cls of a tar's samples, and a key of their .json") {
  const TempDir dir;
  TarWriter tar(dir / "in.tar");
  const auto picture = [](const char* name) { return mm::read_file(field_picture(name)); };
  tar.add("0.png", picture("rgba.png")).add("0.cls", "7\n").add("0.txt", "not read");
  tar.add("1.png", picture("thin.png")).add("1.CLS", " 0 ").add("1.json", R"({"cls": 5, "n": 1})");
  tar.add("2.jpg", picture("gray.jpg")).add("2.json", R"({"cls": 2})");
  tar.close();
  PackOptions options = label_options(dir, "", SourceKind::kJsonl);
  options.source = {.kind = SourceKind::kWebdataset, .path = dir / "in.tar", .labels = "cls"};
  const PackResult result = pack_dataset(options, {.output = dir / "set", .threads = 1});
  CHECK(result.manifest.tokenizer.vocab_size == 8);  // 0 to the largest
  CHECK(classes_of(dir / "set") == std::vector<int32_t>{7, 0, 2});
}

TEST_CASE(
    "labels: a tar's sample without one, with an empty, a linked or a broken one is an entry") {
  const TempDir dir;
  TarWriter tar(dir / "in.tar");
  tar.add("0.jpg", "p").add("0.txt", "a caption is no class");
  tar.add("1.jpg", "p").add("1.cls", "\xff");
  tar.add("2.jpg", "p").add_link("2.cls", "1.cls", true);
  tar.add("3.cls", "3");
  tar.add("4.jpg", "p").add("4.cls", "cat");
  tar.close();
  const auto rows =
      read_all({.kind = SourceKind::kWebdataset, .path = dir / "in.tar", .labels = "cls"});
  CHECK(kinds_of(rows) ==
        std::vector<std::string>{"no_label", "bad_utf8", "bad_row", "bad_row", ""});
  CHECK(record(rows[4]).label == "cat");
  // Not asked for, a .cls is any other member.
  CHECK(kinds_of(read_all({.kind = SourceKind::kWebdataset, .path = dir / "in.tar"}))[4] ==
        "no_caption");
}

TEST_CASE("labels: a column that is not there is named; a source without any is refused") {
  const TempDir dir;
  const PackOptions table = label_options(dir, "image,kind\nrgba.png,3\n", SourceKind::kCsv);
  CHECK_THROWS_WITH_AS(class_names_of(table), doctest::Contains("no column \"label\""),
                       mm::DataError);
  const PackOptions rows = label_options(dir, "{\"image\": \"rgba.png\"}\n", SourceKind::kJsonl);
  CHECK_THROWS_WITH_AS(class_names_of(rows), doctest::Contains("no record has a label"),
                       mm::DataError);
}

TEST_CASE("label names: files that are none are refused; a name is one id") {
  using mm::text::parse_label_names;
  for (const char* bad : {"[]", "[1]", "[\"a\", \"a\"]", "[\"\"]", "[", "{}"})
    CHECK_THROWS_AS(parse_label_names(bad, "names"), mm::DataError);
  const auto names = mm::text::parse_tokenizer(
      mm::text::label_names_file(std::vector<std::string>{"a cat", "ü"}), "names");
  CHECK(names->encode("ü") == std::vector<int32_t>{1});
  CHECK(names->encode_whole("a cat") == std::vector<int32_t>{0});
  CHECK_THROWS_AS(names->encode("a"), mm::DataError);
  CHECK(names->id_to_piece(7).empty());
  CHECK(names->vocab_size() == 2);
  CHECK(names->bos_id() == -1);
}
