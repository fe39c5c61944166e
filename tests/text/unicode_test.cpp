#include "lib/text/unicode.h"

#include <doctest/doctest.h>

#include "lib/text/normal_form.h"
#include "lib/text/utf8.h"

using namespace mm::text;
using namespace std::string_view_literals;

namespace {
AlignedText nfc(std::string_view text) { return to_normal_form(NormalForm::kNfc, text); }
std::string form(NormalForm f, std::string_view text) { return to_normal_form(f, text).text; }
}  // namespace

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

TEST_CASE("utf8: each broken part becomes one mark, as the Unicode Standard's table 3-8") {
  CHECK(replace_invalid_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"sv) ==
        "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD"
        "A");
  CHECK(replace_invalid_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"sv) ==
        "\uFFFD\uFFFD\uFFFD\uFFFD"
        "A");
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
    CHECK(nfc(in).text == out);
    CHECK(nfc(nfc(in).text).text == nfc(in).text);
  }
  CHECK(is_nfc_quick("caf\u00E9"));
  CHECK_FALSE(is_nfc_quick("e\u0301"));
}

TEST_CASE("nfc: each byte knows where it came from, and bytes that are not UTF-8 stay") {
  const AlignedText n = nfc("ae\u0301b");
  CHECK(n.text ==
        "a\u00E9"
        "b");
  CHECK(n.source_byte == std::vector<uint32_t>{0, 1, 1, 4});
  CHECK(nfc("e\xFF\u0301").text == "e\xFF\u0301");
}

TEST_CASE("normal forms: D takes apart, KC and KD replace what only looks different") {
  using enum NormalForm;
  CHECK(form(kNfd, "\u00E9\uD55C") == "e\u0301\u1112\u1161\u11AB");
  CHECK(form(kNfkc, "\uFB01 \u2460 \uFF21\u00B2") == "fi 1 A2");
  CHECK(form(kNfkd, "\uFB01\u00E9") == "fie\u0301");
  CHECK(form(kNfc, "\uFB01") == "\uFB01");
  CHECK(form(kNfkc, "\uFDFA").size() > 20);
}

TEST_CASE("properties: white space, words, numbers, punctuation, lower case") {
  CHECK(is_white_space(0x3000));
  CHECK_FALSE(is_white_space(0x180E));
  CHECK_FALSE(is_white_space(0x200B));
  CHECK(is_word(U'_'));
  CHECK(is_word(0x94D));
  CHECK_FALSE(is_word(0xB2));
  CHECK(is_numeric(0xB2));
  CHECK(is_punctuation(U'$'));
  CHECK_FALSE(is_punctuation(0xA2));
  CHECK_FALSE(is_word(0x110000));
  std::string text;
  for (const char32_t c : {U'A', char32_t{0x130}, char32_t{0x3A3}, char32_t{0x10400}})
    append_lower(c, text);
  CHECK(text == "ai\u0307\u03C3\U00010428");
}
