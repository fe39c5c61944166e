#include "lib/data/source.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "tests/data/source_reading.h"

using namespace mm::data;
using namespace mm::data::test;
namespace fs = std::filesystem;

TEST_CASE("jsonl: captions and conversations in their spellings") {
  const auto rows = read_text(
      SourceKind::kJsonl,
      "\xEF\xBB\xBF{\"image\": \"a.png\", \"text\": \"A cat.\"}\r\n"
      "\n"
      "{\"id\": 7, \"image\": [\"a.png\", \"b.png\"], \"caption\": \"Two.\"}\n"
      "{\"id\": \"t\", \"image\": \"\", \"conversations\": [{\"from\": \"system\", \"value\": "
      "\"s\"},"
      "{\"from\": \"human\", \"value\": \"q\"}, {\"role\": \"assistant\", \"content\": \"a\"}]}");
  REQUIRE(rows.size() == 3);
  CHECK(record(rows[0]).key == "a.png");
  CHECK(record(rows[0]).images == std::vector<std::string>{"a.png"});
  CHECK(record(rows[0]).conversation.turns.size() == 2);
  CHECK(record(rows[0]).conversation.turns[1].text == "A cat.");
  CHECK(record(rows[1]).key == "7");
  CHECK(record(rows[1]).row == 1);
  CHECK(record(rows[1]).conversation.images == 2);
  CHECK(record(rows[2]).key == "t");
  CHECK(record(rows[2]).images.empty());
  REQUIRE(record(rows[2]).conversation.turns.size() == 3);
  CHECK(record(rows[2]).conversation.turns[2].role == mm::text::Role::kAssistant);
}

TEST_CASE("jsonl: bad rows are entries with a reason, the rest goes on") {
  const auto rows = read_text(SourceKind::kJsonl,
                              "{\"image\": \"a.png\"}\n"
                              "not json\n"
                              "[1]\n"
                              "{\"text\": 5}\n"
                              "{\"text\": \"\"}\n"
                              "{\"image\": 5, \"text\": \"x\"}\n"
                              "{\"video\": \"v.mp4\", \"text\": \"x\"}\n"
                              "{\"conversations\": [{\"from\": \"robot\", \"value\": \"x\"}]}\n"
                              "{\"conversations\": [{\"from\": \"human\"}]}\n"
                              "{\"text\": \"\\ud83d\"}\n"
                              "{\"text\": \"good\"}\n");
  std::vector<std::string> kinds;
  for (const auto& row : rows) kinds.push_back(kind_of(row));
  CHECK(kinds == std::vector<std::string>{"bad_row", "bad_json", "bad_row", "bad_row",
                                          "empty_caption", "bad_row", "bad_row", "bad_row",
                                          "bad_row", "bad_json", ""});
  CHECK(std::get<LedgerEntry>(rows[7]).message.find("robot") != std::string::npos);
  CHECK(record(rows[10]).row == 10);
}

TEST_CASE("llava json: elements one at a time, ids and bad elements as in jsonl") {
  const auto rows = read_text(SourceKind::kLlavaJson,
                              " [ {\"id\": \"x\", \"image\": \"a.png\", \"conversations\": "
                              "[{\"from\": \"human\", \"value\": "
                              "\"<image>\\nq ] } \\\" \"}, {\"from\": \"gpt\", \"value\": "
                              "\"a\"}]},\n {\"id\": 1}, {\"a\": 1, \"a\": 2} ,"
                              "{\"text\": \"t\"} ] \n");
  REQUIRE(rows.size() == 4);
  CHECK(record(rows[0]).conversation.turns[0].text == "<image>\nq ] } \" ");
  CHECK(kind_of(rows[1]) == "bad_row");
  CHECK(std::get<LedgerEntry>(rows[1]).key == "1");
  CHECK(kind_of(rows[2]) == "bad_json");
  CHECK(record(rows[3]).key == "row 3");
}

TEST_CASE(
    "C07: a folder is read in byte order, dots, capitals and non-ASCII names keep their captions") {
  const TempDir dir;
  const std::vector<std::string> names = {"22.05.png", "UPPER CASE.JPEG", "données – 北京 №1.jpg",
                                          "sub/png_inside.jpg"};
  fs::create_directories(dir / "sub");
  for (const std::string& name : names) {
    mm::write_file_atomic(dir / name, "picture");
    mm::write_file_atomic(fs::path(dir / name).replace_extension(".txt"), "of " + name);
  }
  const auto rows = read_all({.kind = SourceKind::kFolder, .path = dir.path()});
  REQUIRE(rows.size() == 4);
  for (size_t i = 0; i < 4; ++i) {
    CHECK(record(rows[i]).key == names[i]);
    CHECK(record(rows[i]).conversation.turns[1].text == "of " + names[i]);
  }
}

TEST_CASE("folder: first line or all, missing, empty and broken captions, hidden files") {
  const TempDir dir;
  const auto put = [&](const std::string& name, std::string_view text) {
    mm::write_file_atomic(dir / name, text);
  };
  for (const char* name : {"a.png", "b.png", "c.png", "d.png", "._a.png", "e.webp", "f.svg"})
    put(name, "x");
  put("a.txt", "\xEF\xBB\xBF  One cat. \r\nde.utf8=Eine Katze.\r\n");
  put("b.txt", " \n\n");
  put("c.txt", "\xff\xfe");
  put("e.txt", "e");
  SourceOptions options{
      .kind = SourceKind::kFolder, .path = dir.path(), .caption_lines = CaptionLines::kFirst};
  const auto first = read_all(options);
  REQUIRE(first.size() == 5);
  CHECK(record(first[0]).conversation.turns[1].text == "One cat.");
  CHECK(kind_of(first[1]) == "empty_caption");
  CHECK(kind_of(first[2]) == "bad_utf8");
  CHECK(kind_of(first[3]) == "no_caption");
  CHECK(std::get<LedgerEntry>(first[3]).skipped);
  CHECK(record(first[4]).key == "e.webp");
  options.caption_lines = CaptionLines::kAll;
  CHECK(record(read_all(options)[0]).conversation.turns[1].text ==
        "One cat. \nde.utf8=Eine Katze.");
  options.question = "What is this?";
  CHECK(record(read_all(options)[0]).conversation.turns[0].text == "<image>\nWhat is this?");
}

TEST_CASE("source: its kind is seen from the path and the first character") {
  const TempDir dir;
  mm::write_file_atomic(dir / "a", " \n[{}]");
  mm::write_file_atomic(dir / "b", "{}\n");
  CHECK(sniff_source(dir.path()) == SourceKind::kFolder);
  CHECK(sniff_source(dir / "a") == SourceKind::kLlavaJson);
  CHECK(sniff_source(dir / "b") == SourceKind::kJsonl);
  const auto sniff = [&](const std::string& name, std::string_view content) {
    mm::write_file_atomic(dir / name, content);
    return sniff_source(dir / name);
  };
  CHECK(sniff("meta", "{\n \"a\": {\"root\": \"r\", \"annotation\": \"x.jsonl\"}\n}\n") ==
        SourceKind::kInternvlMeta);
  CHECK(sniff("meta1", "{\"a\": {\"annotation\": \"x.jsonl\"}}") == SourceKind::kInternvlMeta);
  CHECK(sniff("one", "{\"text\": \"a\"}\n") == SourceKind::kJsonl);
  CHECK(sniff("broken", "{\"text\": \"a\n") == SourceKind::kJsonl);
  CHECK_THROWS_WITH_AS(sniff("p.jpg", std::string_view("\xFF\xD8\xFF\xE0\0\x10", 6)),
                       doctest::Contains("bytes that are no text"), mm::DataError);
  CHECK(sniff("p.jsonl", std::string_view("{\0}", 3)) == SourceKind::kJsonl);
  CHECK(sniff("c", "\xEF\xBB\xBFimage,TEXT\r\n") == SourceKind::kCsv);
  CHECK(sniff("t", "file_name\tcaption\n") == SourceKind::kTsv);
  CHECK(sniff("p", "PAR1....") == SourceKind::kParquet);
  CHECK(sniff("z.tar.gz", "\x1f\x8b\x08") == SourceKind::kWebdataset);
  CHECK(sniff("z.tar.zst", "\x28\xb5\x2f\xfd") == SourceKind::kWebdataset);
  CHECK(sniff("x.tar", "old tar without magic") == SourceKind::kWebdataset);
  CHECK(sniff("u", std::string(257, 'a') + "ustar") == SourceKind::kWebdataset);
  CHECK(sniff("m.toml", "# two\n[[source]]\n") == SourceKind::kMixture);
  CHECK(sniff("m", "[[source]]\npath = 'a'\n") == SourceKind::kMixture);
  CHECK(sniff("x", "") == SourceKind::kJsonl);
}

TEST_CASE("source: names of formats") {
  CHECK(source_kind_from_name("llava-json") == SourceKind::kLlavaJson);
  CHECK(!source_kind_from_name("tar"));
  CHECK(!source_kind_from_name("mmc4"));
  CHECK(source_format_from_name("mmc4")->shape == RowShape::kMmc4);
  CHECK(source_format_from_name("pixart")->kind == SourceKind::kLlavaJson);
  for (const std::string& name : source_format_names()) {
    const auto format = source_format_from_name(name);
    REQUIRE(format);
    if (format->shape == RowShape::kAny) CHECK(source_kind_name(format->kind) == name);
  }
}

TEST_CASE("source: a format that was named refuses rows of another shape") {
  const TempDir dir;
  mm::write_file_atomic(dir / "in",
                        "{\"text\": \"a\"}\n{\"messages\": [{\"role\": \"user\", "
                        "\"content\": \"q\"}, {\"role\": \"assistant\", "
                        "\"content\": \"a\"}]}\n");
  SourceOptions options{.kind = SourceKind::kJsonl, .path = dir / "in"};
  CHECK(kinds_of(read_all(options)) == std::vector<std::string>{"", ""});
  options.shape = RowShape::kMessages;
  CHECK(kinds_of(read_all(options)) == std::vector<std::string>{"bad_row", ""});
}

TEST_CASE("source: files of a pattern follow one another, rows count on") {
  const TempDir dir;
  for (const char* name : {"b1.jsonl", "a2.jsonl", "a10.jsonl"}) {
    fs::create_directories(dir / "in");
    mm::write_file_atomic(dir / ("in/" + std::string(name)),
                          fmt::format("{{\"id\": \"{}\", \"text\": \"t\"}}\n", name));
  }
  const auto star = read_all({.kind = SourceKind::kJsonl, .path = dir / "in/*.jsonl"});
  CHECK(keys_of(star) == std::vector<std::string>{"a10.jsonl", "a2.jsonl", "b1.jsonl"});
  CHECK(record(star[2]).row == 2);
  CHECK(record(star[0]).root == (dir / "in").string());
  const auto braces = read_all({.kind = SourceKind::kJsonl, .path = dir / "in/{b1,a2}.jsonl"});
  CHECK(keys_of(braces) == std::vector<std::string>{"b1.jsonl", "a2.jsonl"});
  CHECK_THROWS_AS(read_all({.kind = SourceKind::kJsonl, .path = dir / "in/c*"}), mm::IoError);
}
