#include <doctest/doctest.h>

#include "lib/text/nfc.h"
#include "lib/text/utf8.h"

using namespace mm::text;
using namespace std::string_view_literals;

TEST_CASE("utf8: well-formed sequences of each length are read, all others are not") {
  CHECK(decode_utf8("A", 0).value == U'A');
  CHECK(decode_utf8("\u00E9", 0).value == 0xE9);
  CHECK(decode_utf8("\u4E2D", 0).length_bytes == 3);
  CHECK(decode_utf8("\U0001F600", 0).value == 0x1F600);
  for (const auto bad : {"\x80"sv, "\xC0\x80"sv, "\xC1\xBF"sv, "\xE0\x80\x80"sv, "\xED\xA0\x80"sv,
                         "\xF0\x80\x80\x80"sv, "\xF4\x90\x80\x80"sv, "\xF5"sv, "\xE4\xB8"sv,
                         "\xC3"sv, "\xC3\x41"sv}) {
    CHECK_FALSE(is_valid_utf8(bad));
    CHECK(is_valid_utf8(replace_invalid_utf8(bad)));
  }
}

TEST_CASE("utf8: every code point there and back") {
  for (char32_t c = 0; c <= 0x10FFFF; c += c < 0x3000 ? 1 : 97) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string text;
    append_utf8(c, text);
    const CodePoint back = decode_utf8(text, 0);
    REQUIRE((back.valid && back.value == c && back.length_bytes == text.size()));
  }
}

TEST_CASE("strip: removes ASCII and Unicode white space at both ends, nothing else") {
  CHECK(strip(" \t\n a b \r\x1C") == "a b");
  CHECK(strip("\u3000\u00A0x\u2028") == "x");
  CHECK(strip(" \n ").empty());
  CHECK(strip("\u200Bx") == "\u200Bx");
}

TEST_CASE("nfc: composes, orders marks, knows Hangul, exclusions and singletons") {
  struct Case {
    std::string_view in, out;
  };
  for (const auto& [in, out] :
       {Case{"cafe\u0301", "caf\u00E9"}, Case{"\u212B", "\u00C5"},
        Case{"q\u0307\u0323", "q\u0323\u0307"}, Case{"\u1112\u1161\u11AB", "\uD55C"},
        Case{"\uD558\u11AB", "\uD55C"}, Case{"\u0958", "\u0915\u093C"},
        Case{"a\u0327\u0301", "\u00E1\u0327"}, Case{"e\u0302\u0303", "\u1EC5"},
        Case{"\uF900", "\u8C48"}, Case{"a\u0301\u0301", "\u00E1\u0301"}, Case{"\u0301a", "\u0301a"},
        Case{"plain", "plain"}, Case{"", ""}}) {
    CHECK(to_nfc(in).text == out);
    CHECK(to_nfc(to_nfc(in).text).text == to_nfc(in).text);
  }
  CHECK(is_nfc_quick("caf\u00E9"));
  CHECK_FALSE(is_nfc_quick("e\u0301"));
}

TEST_CASE("nfc: each byte knows where it came from, and bytes that are not UTF-8 stay") {
  const Normalised n = to_nfc("ae\u0301b");
  CHECK(n.text ==
        "a\u00E9"
        "b");
  CHECK(n.source_byte == std::vector<uint32_t>{0, 1, 1, 4});
  CHECK(to_nfc("e\xFF\u0301").text == "e\xFF\u0301");
}
