#include <doctest/doctest.h>

#include "lib/image/decode.h"
#include "tests/image/fixtures.h"
#include "tests/image/made_files.h"

using namespace mm;
using namespace mm::image;
using mm::image::testing::GifRecipe;
using mm::image::testing::make_gif;

namespace {

Colour colour_at(const Image& image, int32_t x, int32_t y) {
  return {image.at(x, y)[0], image.at(x, y)[1], image.at(x, y)[2]};
}

}  // namespace

TEST_CASE("gif: a frame inside its screen is placed, around it is colour 0 or nothing") {
  GifRecipe recipe{.screen = {5, 4}, .frame = {1, 2, 3, 1}, .indices = {1, 2, 3}};
  const std::string opaque = make_gif(recipe);
  const auto decoded = decode(as_bytes(opaque));
  REQUIRE(decoded.ok());
  CHECK(decoded->header.stored == Size{5, 4});
  CHECK(colour_at(decoded->image, 0, 0) == Colour{255, 0, 0});
  CHECK(colour_at(decoded->image, 1, 2) == Colour{0, 255, 0});
  CHECK(colour_at(decoded->image, 3, 2) == Colour{9, 9, 9});
  recipe.transparent = 2;
  const std::string clear = make_gif(recipe);
  const auto over_black = decode(as_bytes(clear), {.alpha = *alpha_from_name("black")});
  REQUIRE(over_black.ok());
  CHECK(colour_at(over_black->image, 0, 0) == Colour{0, 0, 0});
  CHECK(colour_at(over_black->image, 2, 2) == Colour{0, 0, 0});
  CHECK(colour_at(over_black->image, 1, 2) == Colour{0, 255, 0});
}

TEST_CASE("gif: a frame that leaves its screen makes it larger") {
  const std::string file =
      make_gif({.screen = {2, 2}, .frame = {1, 1, 3, 2}, .indices = {1, 1, 1, 2, 2, 2}});
  const auto decoded = decode(as_bytes(file));
  REQUIRE(decoded.ok());
  CHECK(decoded->header.stored == Size{4, 3});
  CHECK(colour_at(decoded->image, 3, 2) == Colour{0, 0, 255});
}

TEST_CASE("gif: interlaced rows come in their order") {
  std::vector<uint8_t> stored;  // the row number of each row, as the file orders them
  for (const int row : {0, 8, 4, 2, 6, 10, 1, 3, 5, 7, 9})
    for (int x = 0; x < 2; ++x) stored.push_back(static_cast<uint8_t>(row));
  std::vector<Colour> colours;
  for (int i = 0; i < 11; ++i) colours.push_back({static_cast<uint8_t>(10 * i), 1, 2});
  const std::string file = make_gif({.screen = {2, 11},
                                     .frame = {0, 0, 2, 11},
                                     .indices = stored,
                                     .colours = colours,
                                     .interlaced = true});
  const auto decoded = decode(as_bytes(file));
  REQUIRE(decoded.ok());
  for (int32_t y = 0; y < 11; ++y) CHECK(decoded->image.at(1, y)[0] == 10 * y);
}

TEST_CASE("gif: cut inside its frame it is truncated, without its end mark whole with a note") {
  const GifRecipe recipe{.indices = std::vector<uint8_t>(16, 1), .end_mark = false};
  const std::string file = make_gif(recipe);
  const auto decoded = decode(as_bytes(file));
  REQUIRE(decoded.ok());
  CHECK(decoded->notes == std::vector<std::string>{"gif: no end mark"});
  for (size_t bytes = 1; bytes + 4 < file.size(); bytes += 3) {
    CAPTURE(bytes);
    CHECK_FALSE(decode(as_bytes(std::string_view(file).substr(0, bytes))).ok());
  }
}

TEST_CASE("gif: too few pixels, a frame of no width and a file without a frame are refused") {
  const std::string few = make_gif({.indices = std::vector<uint8_t>(15, 1)});
  CHECK_FALSE(decode(as_bytes(few)).ok());
  const std::string narrow = make_gif({.frame = {0, 0, 0, 4}, .indices = {}});
  CHECK(probe(as_bytes(narrow)).failure().kind == "corrupt");
  const std::string none = make_gif({.indices = {}}).substr(0, 13 + 768) + std::string(20, ';');
  CHECK(probe(as_bytes(none)).failure().message == "GIF has no frame");
}

TEST_CASE("gif: a giant screen is refused from the header") {
  const std::string file = make_gif({.screen = {65535, 65535}, .indices = {}});
  CHECK(decode(as_bytes(file)).failure().kind == "too_large");
}
