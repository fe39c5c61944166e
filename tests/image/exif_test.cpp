#include "lib/image/exif.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/image/fixtures.h"

using namespace mm::image;
using namespace std::string_view_literals;

namespace {

// A directory of one entry: tag, type, count, value, all little-endian.
std::string block(char tag_low, char type, char count, char value) {
  std::string b("II*\0\x08\0\0\0\x01\0"sv);
  b += tag_low;
  b += '\x01';
  b += type;
  b += '\0';
  b += count;
  b += "\0\0\0"sv;
  b += value;
  b += "\0\0\0\0\0\0\0"sv;
  return b;
}

int orientation(std::string_view b) { return exif_orientation(as_bytes(b)); }

}  // namespace

TEST_CASE("exif: values 1 to 8 are read in both byte orders, with and without JPEG's prefix") {
  for (char v = 1; v <= 8; ++v) {
    CHECK(orientation(block(0x12, 3, 1, v)) == v);
    CHECK(orientation(std::string("Exif\0\0"sv) + block(0x12, 3, 1, v)) == v);
  }
  CHECK(orientation("MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"sv) == 6);
}

TEST_CASE("exif: other values, types, counts, tags and cut blocks give 1") {
  CHECK(orientation(block(0x12, 3, 1, 0)) == 1);
  CHECK(orientation(block(0x12, 3, 1, 9)) == 1);
  CHECK(orientation(block(0x12, 2, 1, 6)) == 1);
  CHECK(orientation(block(0x12, 3, 2, 6)) == 1);
  CHECK(orientation(block(0x13, 3, 1, 6)) == 1);
  CHECK(orientation("") == 1);
  CHECK(orientation("II*\0\xFF\xFF\xFF\xFF"sv) == 1);
  const std::string whole = block(0x12, 3, 1, 6);
  for (size_t n = 0; n < 20; ++n) CHECK(orientation(std::string_view(whole).substr(0, n)) == 1);
}

TEST_CASE("apply_orientation: corners land where the tag says") {
  // Stored 3 x 2 with distinct corners: top-left 1, top-right 2, bottom-left 3, bottom-right 4.
  Image stored(3, 2);
  stored.row(0)[0] = 1;
  stored.row(0)[6] = 2;
  stored.row(1)[0] = 3;
  stored.row(1)[6] = 4;
  struct Case {
    int orientation;
    std::array<int, 4> corners;
  };
  for (const auto& [tag, corners] :
       {Case{1, {1, 2, 3, 4}}, Case{2, {2, 1, 4, 3}}, Case{3, {4, 3, 2, 1}}, Case{4, {3, 4, 1, 2}},
        Case{5, {1, 3, 2, 4}}, Case{6, {3, 1, 4, 2}}, Case{7, {4, 2, 3, 1}},
        Case{8, {2, 4, 1, 3}}}) {
    CAPTURE(tag);
    const Image out = apply_orientation(stored, tag);
    const int32_t right = out.width - 1, bottom = out.height - 1;
    CHECK(out.width == (swaps_sides(tag) ? 2 : 3));
    CHECK(std::array<int, 4>{*out.at(0, 0), *out.at(right, 0), *out.at(0, bottom),
                             *out.at(right, bottom)} == corners);
  }
}
