#include "lib/base/json.h"

#include <doctest/doctest.h>

#include <string>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "tests/base/temp_dir.h"

using mm::DataError;
using mm::Json;
using mm::parse_json;
using mm::test::message_of;

namespace {

std::string refusal(const std::string& text, const mm::JsonLimits& limits = {}) {
  return message_of<DataError>([&] { parse_json(text, "f.json", limits); });
}

std::string nested(int depth) { return std::string(depth, '[') + std::string(depth, ']'); }

}  // namespace

TEST_CASE("parse_json: values of every kind, keys in the order of the file") {
  const Json json = parse_json(
      R"({"z": 1, "a": [true, null, -2, 1.5, "ü\n", 18446744073709551615], "o": {"k": {}}})", "t");
  CHECK(json.dump() == R"({"z":1,"a":[true,null,-2,1.5,"ü\n",18446744073709551615],"o":{"k":{}}})");
  CHECK(parse_json("3", "t") == 3);
  CHECK(parse_json(" [] ", "t").empty());
}

TEST_CASE("parse_json: nesting up to the limit is read, one deeper is refused at its byte") {
  CHECK_NOTHROW(parse_json(nested(64), "t"));
  CHECK(refusal(nested(65)) == "f.json: byte 65: invalid JSON: nested deeper than 64 levels");
  CHECK(refusal(nested(3), {.max_depth = 2}) ==
        "f.json: byte 3: invalid JSON: nested deeper than 2 levels");
  CHECK(refusal(std::string(1'000'000, '[')).find("deeper") != std::string::npos);
}

TEST_CASE("parse_json: a key that appears twice is refused, or the last one wins where allowed") {
  CHECK(refusal(R"({"a":1,"a":2})") == "f.json: byte 10: invalid JSON: key \"a\" appears twice");
  CHECK(refusal(R"({"a":{"b":1},"c":[{"a":1,"\u0061":2}]})").find("key \"a\" appears twice") !=
        std::string::npos);
  const Json json =
      parse_json(R"({"a":1,"b":{"x":0},"a":{"y":2}})", "t", {.reject_duplicate_keys = false});
  CHECK(json.dump() == R"({"a":{"y":2},"b":{"x":0}})");
}

TEST_CASE("parse_json: trailing text, cut text and nothing at all are refused") {
  for (const char* text : {"{} x", "[1,2", "", "{\"a\"", "[1,]", "nul", "\"abc", "01", "NaN"}) {
    CAPTURE(text);
    CHECK(refusal(text).starts_with("f.json: byte "));
  }
  CHECK(refusal(std::string("[1]\0x", 5)) == "f.json: byte 3: invalid JSON: zero byte");
}

TEST_CASE("parse_json: invalid UTF-8 is refused and does not reach the message raw") {
  const std::string message = refusal("[\"ab\xff\xfe\"]");
  CHECK(message.starts_with("f.json: byte 5: invalid JSON: "));
  CHECK(message.find('\xff') == std::string::npos);
  CHECK(refusal("\"\xc0\xaf\"") != "no error");
  CHECK(refusal("\"\xed\xa0\x80\"") != "no error");
  CHECK(refusal(R"("\ud800")") != "no error");
}

TEST_CASE("parse_json: numbers beyond a double are refused") {
  CHECK(refusal("[1e999]") == ("f.json: byte 7: invalid JSON: number overflow parsing '1e999'"));
}

TEST_CASE("parse_json: an object of 100,000 keys takes no square of that") {
  std::string text = "{";
  for (int i = 0; i < 100'000; ++i) text += "\"k" + std::to_string(i) + "\":0,";
  text.back() = '}';
  CHECK(parse_json(text, "t").size() == 100'000);
}

TEST_CASE("read_json_file: names the file") {
  const mm::test::TempDir dir;
  mm::write_file_atomic(dir / "a.json", "{");
  CHECK(message_of<DataError>([&] {
          mm::read_json_file(dir / "a.json");
        }).starts_with((dir / "a.json").string() + ": byte 1: invalid JSON: "));
}
