#include <arrow/api.h>
#include <arrow/io/file.h>
#include <parquet/arrow/writer.h>

#include <random>

#include "lib/base/error.h"
#include "tests/data/source_fuzz.h"

using namespace mm::data;
using namespace mm::data::test;
namespace fs = std::filesystem;

namespace {

void check(const arrow::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

template <typename T>
T take(arrow::Result<T> result) {
  check(result.status());
  return std::move(*result);
}

std::shared_ptr<arrow::Array> texts(const std::vector<std::string>& values) {
  arrow::StringBuilder builder;
  for (const std::string& value : values) check(builder.Append(value));
  return take(builder.Finish());
}

/// A column of struct{bytes, path}; an empty text is null bytes.
std::shared_ptr<arrow::Array> images(const std::vector<std::string>& bytes,
                                     const std::vector<std::string>& paths) {
  arrow::BinaryBuilder builder;
  for (const std::string& value : bytes)
    check(value.empty() ? builder.AppendNull() : builder.Append(value));
  return take(arrow::StructArray::Make({take(builder.Finish()), texts(paths)},
                                       std::vector<std::string>{"bytes", "path"}));
}

/// One list of texts a row, from a JSON list of lists.
std::shared_ptr<arrow::Array> lists(const std::vector<std::vector<std::string>>& rows) {
  auto values = std::make_shared<arrow::StringBuilder>();
  arrow::ListBuilder builder(arrow::default_memory_pool(), values);
  for (const auto& row : rows) {
    check(builder.Append());
    for (const std::string& value : row)
      check(value.empty() ? values->AppendNull() : values->Append(value));
  }
  return take(builder.Finish());
}

struct Column {
  std::string name;
  std::shared_ptr<arrow::Array> values;
};

void write(const fs::path& path, const std::vector<Column>& columns, int64_t group_rows = 1024,
           arrow::Compression::type codec = arrow::Compression::SNAPPY) {
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  for (const Column& column : columns) {
    fields.push_back(arrow::field(column.name, column.values->type()));
    arrays.push_back(column.values);
  }
  const auto table = arrow::Table::Make(arrow::schema(fields), arrays);
  auto properties = parquet::WriterProperties::Builder().compression(codec)->build();
  auto out = take(arrow::io::FileOutputStream::Open(path.string()));
  check(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), out, group_rows,
                                   properties));
  check(out->Close());
}

std::vector<SourceItem> read(const fs::path& path) {
  return read_all({.kind = SourceKind::kParquet, .path = path});
}

}  // namespace

TEST_CASE("parquet: struct images with bytes or a path, captions, over row groups and codecs") {
  const TempDir dir;
  for (const auto codec : {arrow::Compression::UNCOMPRESSED, arrow::Compression::SNAPPY,
                           arrow::Compression::ZSTD, arrow::Compression::GZIP}) {
    write(dir / "in.parquet",
          {{"image", images({"foo", "", "bar"}, {"a.jpg", "b.jpg", ""})},
           {"score", texts({"1", "2", "3"})},
           {"text", texts({"one", "two", "three"})}},
          2, codec);
    const auto rows = read(dir / "in.parquet");
    REQUIRE(rows.size() == 3);
    CHECK(record(rows[0]).images == std::vector<std::string>{"a.jpg"});
    REQUIRE(record(rows[0]).content(0) != nullptr);
    CHECK(*record(rows[0]).content(0) == "foo");
    CHECK(record(rows[1]).content(0) == nullptr);
    CHECK(record(rows[1]).images == std::vector<std::string>{"b.jpg"});
    CHECK(*record(rows[2]).content(0) == "bar");
    CHECK(answer(rows[2]) == "three");
    CHECK(record(rows[2]).row == 2);
  }
  CHECK(sniff_source(dir / "in.parquet") == SourceKind::kParquet);
}

TEST_CASE("parquet: lists of captions, documents and conversations as JSON text") {
  const TempDir dir;
  write(dir / "a.parquet", {{"caption", lists({{"", "first"}, {"only"}})}});
  CHECK(answer(read(dir / "a.parquet")[0]) == "first");
  write(dir / "b.parquet",
        {{"texts", lists({{"One.", "", "Two."}})}, {"images", lists({{"", "a.jpg", ""}})}});
  mm::write_file_atomic(dir / "a.jpg", "x");
  const auto document = read(dir / "b.parquet");
  REQUIRE(document.size() == 1);
  CHECK(record(document[0]).conversation.document);
  CHECK(record(document[0]).conversation.turns.size() == 3);
  write(dir / "c.parquet", {{"conversations", texts({R"([{"from": "human", "value": "q"},
    {"from": "gpt", "value": "a"}])",
                                                     "broken"})}});
  CHECK(kinds_of(read(dir / "c.parquet")) == std::vector<std::string>{"", "bad_row"});
}

TEST_CASE("parquet: lists of structs as messages") {
  const TempDir dir;
  const auto turns =
      take(arrow::StructArray::Make({texts({"user", "assistant"}), texts({"q", "a"})},
                                    std::vector<std::string>{"role", "content"}));
  arrow::Int32Builder offsets;
  check(offsets.AppendValues({0, 2}));
  const auto list = take(arrow::ListArray::FromArrays(*take(offsets.Finish()), *turns));
  write(dir / "in.parquet", {{"messages", list}});
  const auto rows = read(dir / "in.parquet");
  REQUIRE(rows.size() == 1);
  CHECK(answer(rows[0]) == "a");
}

TEST_CASE("parquet: a column of labels, numbers or names, in place of a text") {
  const TempDir dir;
  arrow::Int64Builder numbers;
  check(numbers.AppendValues({3, 0}));
  check(numbers.AppendNull());
  arrow::DoubleBuilder fractions;
  check(fractions.AppendValues({0.5, 1, 2}));
  const auto pictures = images({"foo", "bar", "baz"}, {"", "", ""});
  write(dir / "in.parquet", {{"image", pictures},
                             {"label", take(numbers.Finish())},
                             {"breed", texts({"pug", "tabby", "pug"})},
                             {"score", take(fractions.Finish())}});
  const auto labelled = [&](const char* column) {
    return read_all({.kind = SourceKind::kParquet, .path = dir / "in.parquet", .labels = column});
  };
  const auto rows = labelled("label");
  CHECK(kinds_of(rows) == std::vector<std::string>{"", "", "no_label"});
  CHECK(record(rows[0]).label == "3");
  CHECK(record(rows[1]).label == "0");
  CHECK(*record(rows[1]).content(0) == "bar");
  CHECK(record(labelled("breed")[1]).label == "tabby");
  CHECK(kinds_of(labelled("score"))[0] == "bad_row");
  CHECK(kinds_of(labelled("breeds"))[0] == "no_label");
  // A file without a text needs them.
  CHECK_THROWS_WITH_AS(read(dir / "in.parquet"), doctest::Contains("no column with text"),
                       mm::DataError);
}

TEST_CASE("parquet: bad cells are entries, a file without text or of another kind is refused") {
  const TempDir dir;
  write(dir / "in.parquet", {{"text", texts({"good", "\xff", "good"})}});
  CHECK(kinds_of(read(dir / "in.parquet")) == std::vector<std::string>{"", "bad_row", ""});
  write(dir / "none.parquet", {{"score", texts({"1"})}});
  CHECK_THROWS_WITH_AS(read(dir / "none.parquet"), doctest::Contains("no column with text"),
                       mm::DataError);
  mm::write_file_atomic(dir / "not.parquet", "PAR1 not really PAR1");
  CHECK_THROWS_AS(read(dir / "not.parquet"), mm::DataError);
}

TEST_CASE("fuzz: Parquet files") {
  const TempDir dir;
  write(dir / "seed.parquet",
        {{"image", images({"foo", ""}, {"a.jpg", "b.jpg"})}, {"text", texts({"one", "two"})}}, 1,
        arrow::Compression::UNCOMPRESSED);
  fuzz_source(dir, "in.parquet", SourceKind::kParquet, mm::read_file(dir / "seed.parquet"), 150);
}
