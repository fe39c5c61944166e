#include "lib/base/text_escape.h"

#include <doctest/doctest.h>

using mm::escape_text;
using mm::utf8_length;

TEST_CASE("escape_text: valid UTF-8 stays, controls and invalid bytes become visible") {
  CHECK(escape_text("données – 北京 №1.jpg") == "données – 北京 №1.jpg");
  CHECK(escape_text("a\nb\tc\x1b[31m\x7f") == "a\\nb\\tc\\x1b[31m\\x7f");
  CHECK(escape_text("\xff\xc3(") == "\\xff\\xc3(");
  CHECK(escape_text("\xc2\x9b"
                    "31m") == "\\xc2\\x9b31m");
  CHECK(escape_text("").empty());
}

TEST_CASE("escape_text: cuts long text between characters and never exceeds the limit") {
  CHECK(escape_text("abcdef", 6) == "abcdef");
  CHECK(escape_text("abcdefg", 6) == "abc...");
  CHECK(escape_text("äöüäöü", 8) == "äö...");
  CHECK(escape_text("ab\x01\x02\x03", 8) == "ab...");
}

TEST_CASE("utf8_length: lengths of valid characters, 0 for every way to be invalid") {
  CHECK(utf8_length("a") == 1);
  CHECK(utf8_length("ä") == 2);
  CHECK(utf8_length("北") == 3);
  CHECK(utf8_length("😀") == 4);
  for (const char* bad : {"", "\x80", "\xc0\xaf", "\xc3", "\xe0\x80\xaf", "\xed\xa0\x80",
                          "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe5\x8c"}) {
    CHECK(utf8_length(bad) == 0);
  }
}
