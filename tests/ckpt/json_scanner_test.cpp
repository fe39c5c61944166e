#include "lib/ckpt/json_scanner.h"

#include <doctest/doctest.h>

#include <vector>

#include "lib/base/error.h"
#include "lib/base/json.h"

using namespace mm::ckpt;

namespace {

std::string scanned(std::string_view quoted) {
  JsonScanner scan(quoted, "x");
  std::string text = scan.string("test");
  CHECK(scan.at_end());
  return text;
}

}  // namespace

TEST_CASE("json scanner: strings resolve their escapes as the JSON library does") {
  for (const char* quoted :
       {R"("")", R"("plain")", R"("\"\\\/\b\f\n\r\t")", R"("\u0041\u00e9\u4e2d")",
        R"("\ud83e\udd8a")", "\"\u00e9\u4e2d\U0001F98A\"", R"("\u0000\u001F\uFFFF")"}) {
    CAPTURE(quoted);
    CHECK(scanned(quoted) == mm::parse_json(quoted, "x").get<std::string>());
  }
}

TEST_CASE(
    "json scanner: quoting and scanning are each other's inverse, and the JSON library agrees") {
  std::string all;
  for (int c = 0; c < 128; ++c) all += static_cast<char>(c);
  all += "\u00e9\u4e2d\U0001F98A";
  CHECK(scanned(json_quoted(all)) == all);
  CHECK(mm::parse_json(json_quoted(all), "x").get<std::string>() == all);
}

TEST_CASE("json scanner: integers are unsigned, exact and without ornament") {
  const auto number = [](std::string_view text) { return JsonScanner(text, "x").u64("test"); };
  CHECK(number("0") == 0);
  CHECK(number("18446744073709551615") == ~uint64_t{0});
  for (const char* bad : {"", "-0", "-1", "+1", "01", "1.5", "1.", "1e2", "1E2",
                          "18446744073709551616", "99999999999999999999999", "true", "\"1\""}) {
    CAPTURE(bad);
    CHECK_THROWS_AS(number(bad), mm::DataError);
  }
}

TEST_CASE("json scanner: skipping a value ends behind it, wrong ones and deep ones are refused") {
  for (const std::string value : {"null", "true", "false", "0", "-1.5e+3", "\"a]\"", "[]", "{}",
                                  "[1,[2,{\"a\":[]}]]", "{\"a\":{\"b\":1},\"c\":[1, 2 ]}"}) {
    const std::string text = value + ",";
    CAPTURE(text);
    JsonScanner scan(text, "x");
    scan.skip_value(8);
    CHECK(scan.offset() == value.size());
  }
  for (const char* bad : {"", "nul", "tru", "[1", "[1,]", "{\"a\"}", "{1:2}", "-", "1.", "1e",
                          "'a'", "\"a", "[[[[[[[[[]]]]]]]]]"}) {
    CAPTURE(bad);
    JsonScanner scan(bad, "x");
    CHECK_THROWS_AS(scan.skip_value(8), mm::DataError);
  }
}

TEST_CASE("json scanner: messages have origin, offset and what was expected") {
  JsonScanner scan("{\"a\" 1}", "file.json");
  CHECK_THROWS_WITH_AS(scan.object("a box", [](std::string) {}),
                       "file.json: invalid JSON at byte 5: ':' expected in a box, found '1'",
                       mm::DataError);
}

TEST_CASE("json scanner: well-formed UTF-8 is told from the rest") {
  for (const char* good : {"", "a", "\u00e9", "\u4e2d", "\U0001F98A", "\U0010FFFF"})
    CHECK(is_valid_utf8(good));
  for (const char* bad : {"\x80", "\xC3", "\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80",
                          "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80", "a\xFF"})
    CHECK_FALSE(is_valid_utf8(bad));
  CHECK(printable_name("a\nb") == "'a\\nb'");
}
