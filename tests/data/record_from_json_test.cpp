#include "lib/data/record_from_json.h"

#include <doctest/doctest.h>

#include "lib/base/html.h"
#include "tests/data/source_reading.h"

using namespace mm::data;
using namespace mm::data::test;
using mm::text::Role;

namespace {

SourceItem read(std::string_view json, const RowOptions& options = {}) {
  return record_from_text(json, "test", 4, options);
}

std::string message_of(const SourceItem& item) { return std::get<LedgerEntry>(item).message; }

constexpr std::string_view kQuestion =
    R"("conversations": [{"from": "human", "value": "<image>\nq"},
  {"from": "gpt", "value": "a"}])";

}  // namespace

TEST_CASE("row: pictures as string, list, absent, empty or null; ids of all sorts") {
  const auto with = [&](const std::string& fields) {
    return read("{" + fields + std::string(kQuestion) + "}");
  };
  CHECK(record(with(R"("image": "a.png", )")).images == std::vector<std::string>{"a.png"});
  CHECK(record(with(R"("image": ["a.png", "b.png"], )")).images.size() == 2);
  for (const char* none : {"", R"("image": "", )", R"("image": null, )", R"("image": [], )"})
    CHECK(record(with(none)).images.empty());
  CHECK(record(with(R"("id": 7, "image": "a.png", )")).key == "7");
  CHECK(record(with(R"("id": "x", "image": "a.png", )")).key == "x");
  CHECK(record(with(R"("image": "a.png", )")).key == "a.png");
  CHECK(record(with(R"("id": 1.5, )")).key == "row 4");
  CHECK(record(with(R"("video": null, )")).key == "row 4");
  CHECK(kind_of(with(R"("video": "v.mp4", )")) == "bad_row");
  CHECK(kind_of(with(R"("image": "https://host/a.png", )")) == "remote");
  CHECK(kind_of(with(R"("image": [3], )")) == "bad_row");
}

TEST_CASE("C07: names by \\u escapes are kept byte for byte") {
  const auto item =
      read(R"({"image": "donn\u00e9es \u2013 \u5317\u4eac \u21161.jpg", "text": "t"})");
  CHECK(record(item).images[0] == "données – 北京 №1.jpg");
  CHECK(kind_of(read(R"({"text": "\ud83d"})")) == "bad_json");
}

TEST_CASE("row: every spelling of a role") {
  const auto item = read(R"({"conversations": [{"role": "system", "content": "s"},
    {"from": "user", "value": "q"}, {"from": "assistant", "value": "a"},
    {"role": "human", "value": "q"}, {"from": "gpt", "content": "b"}]})");
  std::vector<Role> roles;
  for (const auto& turn : record(item).conversation.turns) roles.push_back(turn.role);
  CHECK(roles == std::vector<Role>{Role::kSystem, Role::kUser, Role::kAssistant, Role::kUser,
                                   Role::kAssistant});
  CHECK(
      message_of(read(R"({"conversations": [{"from": "tool", "value": "x"}]})")).find("\"tool\"") !=
      std::string::npos);
}

TEST_CASE("C13: pictures without a mark are refused by the renderer, or get marks on request") {
  constexpr std::string_view row = R"({"image": ["a.png", "b.png"], "conversations":
    [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]})";
  CHECK(record(read(row)).conversation.turns[0].text == "q");
  const auto item = read(row, {.missing_marks = MissingMarks::kPrepend});
  CHECK(record(item).conversation.turns[0].text == "<image>\n<image>\nq");
  CHECK(record(item).conversation.images == 2);
}

TEST_CASE("messages: text, parts, pictures by path, data URL and bytes") {
  const std::string url = "data:image/png;base64,Zm9v";
  const auto item = read(R"({"messages": [
    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": ")" +
                         url + R"("}},
      {"type": "text", "text": "first"}, {"type": "image"}, {"type": "text", "text": "second"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "a"}]},
    {"role": "user", "content": "<image>third"}, {"role": "assistant", "content": "b"}],
    "images": [{"bytes": "YmFy", "path": "x.jpg"}, "p.png"]})");
  const Record& row = record(item);
  CHECK(row.images == std::vector<std::string>{"picture 0", "x.jpg", "p.png"});
  REQUIRE(row.content(0) != nullptr);
  CHECK(*row.content(0) == "foo");
  CHECK(*row.content(1) == "bar");
  CHECK(row.content(2) == nullptr);
  CHECK(row.conversation.images == 3);
  CHECK(row.conversation.turns[0].text == "<image>\nfirst\n<image>\nsecond");
  CHECK(row.conversation.turns[1].text == "a");
  CHECK(row.conversation.turns[2].text == "<image>third");
}

TEST_CASE("messages: marks must equal the images, both numbers are said") {
  const auto rows = [](int marks, const char* images) {
    std::string content;
    for (int i = 0; i < marks; ++i) content += "<image>";
    return read(R"({"messages": [{"role": "user", "content": ")" + content +
                R"(q"}, {"role": "assistant", "content": "a"}], "images": )" + images + "}");
  };
  CHECK(kind_of(rows(2, R"(["a", "b"])")) == "");
  CHECK(kind_of(rows(2, R"(["a"])")) == "image_count");
  CHECK(message_of(rows(1, R"(["a", "b"])")) == "1 marks take pictures from the row's list of 2");
  CHECK(kind_of(rows(1, "[]")) == "image_count");
  CHECK(kind_of(rows(0, R"(["a"])")) == "");  // no mark at all: the renderer's rule
}

TEST_CASE("messages: what cannot be trained on as it asks is refused") {
  const auto turn = [](const std::string& item) {
    return read(R"({"messages": [{"role": "user", "content": "q"}, )" + item + "]}");
  };
  CHECK(kind_of(turn(R"({"role": "assistant", "content": "a", "loss": true})")) == "");
  CHECK(kind_of(turn(R"({"role": "assistant", "content": "a", "loss": false})")) == "bad_row");
  CHECK(kind_of(turn(R"({"role": "assistant", "content": "a", "weight": 0})")) == "bad_row");
  CHECK(kind_of(turn(R"({"role": "tool", "content": "a"})")) == "bad_row");
  CHECK(kind_of(turn(R"({"role": "assistant", "content": null})")) == "bad_row");
  CHECK(kind_of(turn(R"({"role": "assistant", "content": [{"type": "image", "image": "a"}]})")) ==
        "bad_row");
  CHECK(kind_of(turn(R"({"role": "user", "content": [{"type": "audio"}]})")) == "bad_row");
  CHECK(kind_of(turn(R"({"role": "user", "content": ["x"]})")) == "bad_row");
  CHECK(kind_of(read(R"({"messages": 5})")) == "bad_row");
  CHECK(kind_of(read(R"({"messages": "[{\"role\": \"user\", \"content\": \"q\"}]"})")) == "");
}

TEST_CASE("captions: aliases, lists and PixArt rows") {
  const auto pixart = read(R"({"path": "a/b.png", "prompt": "a cat", "height": 5, "ratio": 1.0})");
  CHECK(record(pixart).images == std::vector<std::string>{"a/b.png"});
  CHECK(answer(pixart) == "a cat");
  CHECK(answer(read(R"({"file_name": "a.png", "text": ["", "one", "two"]})")) == "one");
  CHECK(kind_of(read(R"({"file_name": "a.png", "text": [""]})")) == "empty_caption");
  CHECK(answer(read(R"({"TEXT": "only text"})")) == "only text");
  CHECK(kind_of(read(R"({"image": "a.png"})")) == "bad_row");
}
