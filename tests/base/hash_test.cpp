#include "lib/base/hash.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

namespace {

std::string ascending(size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += static_cast<char>(i);
  return text;
}

uint32_t portable(std::string_view text, uint32_t seed = 0) {
  return mm::detail::crc32c_portable(std::as_bytes(std::span(text.data(), text.size())), seed);
}

}  // namespace

TEST_CASE("crc32c: the vectors of RFC 3720 B.4") {
  std::string descending = ascending(32);
  std::reverse(descending.begin(), descending.end());
  CHECK(mm::crc32c(std::string(32, '\0')) == 0x8a9136aau);
  CHECK(mm::crc32c(std::string(32, '\xff')) == 0x62a8ab43u);
  CHECK(mm::crc32c(ascending(32)) == 0x46dd794eu);
  CHECK(mm::crc32c(descending) == 0x113fdb5cu);
  CHECK(mm::crc32c("123456789") == 0xe3069283u);
  CHECK(mm::crc32c("") == 0u);
}

TEST_CASE("crc32c: instruction and table agree for every length, alignment and seed") {
  const std::string text = ascending(300);
  for (size_t start = 0; start < 9; ++start) {
    for (size_t length = 0; length < 70; ++length) {
      const std::string_view part = std::string_view(text).substr(start, length);
      REQUIRE(mm::crc32c(part, 17) == portable(part, 17));
    }
  }
}

TEST_CASE("crc32c: instruction and table agree where lanes begin and end") {
  const std::string text = ascending(40'000);
  for (const size_t length :
       {12'287u, 12'288u, 12'289u, 24'575u, 24'576u, 36'863u, 36'864u, 40'000u}) {
    for (size_t start = 0; start < std::min<size_t>(3, text.size() - length + 1); ++start) {
      const std::string_view part = std::string_view(text).substr(start, length);
      CHECK(mm::crc32c(part, 99) == portable(part, 99));
    }
  }
}

TEST_CASE("crc32c: blocks chain through the seed") {
  const std::string text = ascending(200);
  const std::string_view view = text;
  CHECK(mm::crc32c(view.substr(77), mm::crc32c(view.substr(0, 77))) == mm::crc32c(view));
}

TEST_CASE("xxh3: parts give the hash of the whole") {
  const std::string text = ascending(5000);
  mm::Xxh3Stream stream;
  for (size_t at = 0; at < text.size(); at += 333)
    stream.add(std::string_view(text).substr(at, 333));
  CHECK(stream.hex() == mm::xxh3_128_hex(text));
  CHECK(mm::Xxh3Stream().hex() == mm::xxh3_128_hex(""));
}

TEST_CASE("xxh3: reference values of the empty text, and the seed matters") {
  CHECK(mm::xxh3_64("") == 0x2d06800538d394c2u);
  CHECK(mm::xxh3_128_hex("") == "99aa06d3014798d86001c324468d497f");
  CHECK(mm::xxh3_64("a", 1) != mm::xxh3_64("a", 2));
  CHECK(mm::xxh3_128_hex("abc").size() == 32);
}
