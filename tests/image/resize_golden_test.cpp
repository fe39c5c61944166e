#include <doctest/doctest.h>
#include <zlib.h>

#include "lib/image/resize.h"
#include "tests/image/fixtures.h"

using namespace mm;
using namespace mm::image;

namespace {

// As tools/make_resize_golden.py makes it.
Image golden_picture(int32_t width, int32_t height, uint32_t seed) {
  Image out(width, height);
  for (uint32_t i = 0; i < out.rgb.size(); ++i) {
    const uint32_t noise = (i * 2654435761U + seed * 40503U) >> 13 & 255;
    const uint32_t kind = i / 997 % 3;
    out.rgb[i] = static_cast<uint8_t>(kind == 0   ? noise
                                      : kind == 1 ? (noise & 1) * 255
                                                  : i / 7 + seed);
  }
  return out;
}

uint32_t mark(const Image& image) {
  return static_cast<uint32_t>(crc32(0, image.rgb.data(), static_cast<uInt>(image.rgb.size())));
}

int differing_cases(const Json& table, const char* column, PassOrder order) {
  int differing = 0;
  for (size_t i = 0; i < table["cases"].size(); ++i) {
    const Json& c = table["cases"][i];
    const Image in = golden_picture(c[0], c[1], c[5]);
    const Image out = resize(in, {c[2], c[3]}, *filter_from_name(c[4].get<std::string>()), order);
    const bool same = mark(out) == table[column]["crc32"][i].get<uint32_t>();
    differing += !same;
    if (!same) MESSAGE(c.dump());
  }
  return differing;
}

}  // namespace

TEST_CASE("resize: equals Pillow 12 on every golden case, all five filters") {
  const Json table = parse_json(mm::image::testing::fixture("image/resize_golden.json"), "golden");
  CHECK(table["cases"].size() == 240);
  CHECK(differing_cases(table, "pillow12", PassOrder::kPillow12) == 0);
}

TEST_CASE("resize: equals Pillow 13 on every golden case in that version's order of passes") {
  const Json table = parse_json(mm::image::testing::fixture("image/resize_golden.json"), "golden");
  CHECK(table["pillow12"]["crc32"] != table["pillow13"]["crc32"]);
  CHECK(differing_cases(table, "pillow13", PassOrder::kPillow13) == 0);
}
