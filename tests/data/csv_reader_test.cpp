#include "lib/data/csv_reader.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "tests/data/source_reading.h"

using namespace mm::data;
using namespace mm::data::test;

namespace {

using Rows = std::vector<std::vector<std::string>>;

/// Rows of a text; a row with a problem is {"!", problem}.
Rows rows_of(std::string_view text, char delimiter = ',') {
  const TempDir dir;
  mm::write_file_atomic(dir / "in", text);
  CsvReader reader(dir / "in", delimiter);
  Rows rows;
  while (auto row = reader.next())
    rows.push_back(row->problem.empty() ? row->fields
                                        : std::vector<std::string>{"!", row->problem});
  return rows;
}

}  // namespace

TEST_CASE("csv: RFC 4180: quotes, doubled quotes, embedded line ends, BOM, CRLF, blank lines") {
  CHECK(rows_of("\xEF\xBB\xBF"
                "a,b\r\n\r\n\"x, \"\"y\"\"\",\"line 1\r\nline 2\"\r\n,\n\n1,2") ==
        Rows{{"a", "b"}, {"x, \"y\"", "line 1\r\nline 2"}, {"", ""}, {"1", "2"}});
  CHECK(rows_of("a\tb,c\n", '\t') == Rows{{"a", "b,c"}});
  CHECK(rows_of("").empty());
  CHECK(rows_of("\"\"").empty());
}

TEST_CASE("csv: stray quotes are text, a quote that stays open is a problem of its row") {
  CHECK(rows_of("say \"hi\",5\" x\n\"a\"b,c\n") == Rows{{"say \"hi\"", "5\" x"}, {"ab", "c"}});
  const auto open = rows_of("a,b\n1,\"open\n2,3\n");
  REQUIRE(open.size() == 2);
  CHECK(open[1][1] == "a quote is open to the end of the file");
}

TEST_CASE("csv: the line of a row counts the line ends inside its fields") {
  const TempDir dir;
  mm::write_file_atomic(dir / "in", "a\n\"1\n2\n3\"\nb\n");
  CsvReader reader(dir / "in", ',');
  CHECK(reader.next()->line == 1);
  CHECK(reader.next()->line == 2);
  CHECK(reader.next()->line == 5);
}

TEST_CASE("csv source: aliases of columns in any case, nulls, unknown columns") {
  const auto rows = read_text(SourceKind::kCsv,
                              "ID,File_Name,score,Caption\n"
                              "7,a.png,0.5,\"A cat,\nasleep.\"\n"
                              "\\N,b.png,,B.\n");
  REQUIRE(rows.size() == 2);
  CHECK(record(rows[0]).key == "7");
  CHECK(record(rows[0]).images == std::vector<std::string>{"a.png"});
  CHECK(answer(rows[0]) == "A cat,\nasleep.");
  CHECK(record(rows[1]).key == "b.png");
  const auto tsv = read_text(SourceKind::kTsv, "TEXT\tpath\nA dog.\td.png\n");
  CHECK(answer(tsv[0]) == "A dog.");
  CHECK(record(tsv[0]).images == std::vector<std::string>{"d.png"});
  const auto texts = read_text(SourceKind::kCsv, "text\njust text\n");
  CHECK(record(texts[0]).images.empty());
}

TEST_CASE("csv source: rows that do not fit the header, other bytes and empty cells are entries") {
  const auto rows = read_text(SourceKind::kCsv,
                              "image,text\na.png,ok\na.png\na.png,b,c\n,no picture\na.png,\n"
                              "a.png,\xff\na.png,\"open\n");
  CHECK(kinds_of(rows) == std::vector<std::string>{"", "bad_csv", "bad_csv", "bad_row", "bad_row",
                                                   "bad_utf8", "bad_csv"});
  CHECK(std::get<LedgerEntry>(rows[1]).message.ends_with("line 3: has 1 fields, the header has 2"));
}

TEST_CASE("csv source: a header without text or with a column twice is refused as a whole") {
  CHECK_THROWS_WITH_AS(read_text(SourceKind::kCsv, "image,score\na,b\n"),
                       doctest::Contains("no column with text in its header (image, score)"),
                       mm::DataError);
  CHECK_THROWS_AS(read_text(SourceKind::kCsv, "text,Text\na,b\n"), mm::DataError);
  CHECK_THROWS_AS(read_text(SourceKind::kCsv, ""), mm::DataError);
}
