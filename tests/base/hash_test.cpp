#include "lib/base/hash.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "lib/base/crc32c_kernels.h"
#include "lib/base/random.h"

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

TEST_CASE(
    "crc32c: every way that this CPU has gives the table's value, for all lengths and places") {
  const std::string text = ascending(1400);
  for (const auto& kernel : mm::detail::usable_crc32c()) {
    CAPTURE(kernel.name);
    for (size_t start = 0; start < 9; ++start) {
      for (size_t length = 0; length < 1100; length += length < 70 ? 1 : 13) {
        const std::string_view part = std::string_view(text).substr(start, length);
        REQUIRE(kernel.run(std::as_bytes(std::span(part.data(), part.size())), 17) ==
                portable(part, 17));
      }
    }
  }
}

TEST_CASE("crc32c: every way agrees where its lanes and blocks begin and end, on random bytes") {
  const mm::Philox random(5, "crc32c test");
  std::string text;
  for (uint64_t i = 0; i < 40'000; ++i) text += static_cast<char>(random.below(i, 256));
  for (const auto& kernel : mm::detail::usable_crc32c()) {
    CAPTURE(kernel.name);
    for (const size_t border : {256u, 512u, 768u, 4096u, 12'288u, 24'576u, 36'864u}) {
      for (size_t length = border - 1; length <= border + 1; ++length) {
        for (const uint32_t seed : {0u, 99u, ~0u}) {
          const std::string_view part = std::string_view(text).substr(border % 5, length);
          CHECK(kernel.run(std::as_bytes(std::span(part.data(), part.size())), seed) ==
                portable(part, seed));
        }
      }
    }
  }
}

TEST_CASE("crc32c: one flipped bit anywhere changes it") {
  std::string text = ascending(2000);
  const uint32_t whole = mm::crc32c(text);
  for (size_t bit = 0; bit < 8 * text.size(); bit += 7) {
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
    REQUIRE(mm::crc32c(text) != whole);
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
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
