#include "lib/image/encode.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/image/decode.h"
#include "lib/image/normalise.h"
#include "tests/image/fixtures.h"

using namespace mm;
using namespace mm::image;
using mm::image::testing::noise_picture;

TEST_CASE("encode_png: gives the same pixels back") {
  for (const auto& [w, h] : {std::pair{1, 1}, {17, 9}, {640, 3}}) {
    const Image picture = noise_picture(w, h, 1);
    const auto back = decode(as_bytes(encode_png(picture)));
    REQUIRE(back.ok());
    CHECK(back->image == picture);
    CHECK(back->notes.empty());
  }
}

TEST_CASE(
    "encode_jpeg: a smooth picture comes back within a few levels, and equal pictures give equal "
    "bytes") {
  Image picture(90, 70);
  for (int32_t y = 0; y < 70; ++y) {
    for (int32_t x = 0; x < 90; ++x) {
      picture.row(y)[3 * x] = static_cast<uint8_t>(2 * x);
      picture.row(y)[3 * x + 1] = static_cast<uint8_t>(3 * y);
      picture.row(y)[3 * x + 2] = static_cast<uint8_t>(x + y);
    }
  }
  for (const bool full_chroma : {false, true}) {
    const std::string file = encode_jpeg(picture, {.quality = 95, .full_chroma = full_chroma});
    CHECK(file == encode_jpeg(picture, {.quality = 95, .full_chroma = full_chroma}));
    const auto back = decode(as_bytes(file));
    REQUIRE(back.ok());
    CHECK(mm::image::testing::max_difference(back->image, picture) <= 8);
  }
  // Tables of its own change how the numbers are written, not the numbers.
  const std::string plain = encode_jpeg(picture, {.optimise = false});
  const std::string small = encode_jpeg(picture, {.optimise = true});
  CHECK(small.size() < plain.size());
  CHECK(decode(as_bytes(small))->image == decode(as_bytes(plain))->image);
  CHECK(encode_jpeg(picture, {.quality = 30}).size() <
        encode_jpeg(picture, {.quality = 98}).size());
}

TEST_CASE("encode: an empty picture is our bug") {
  CHECK_THROWS_AS(encode_jpeg(Image()), InternalError);
  CHECK_THROWS_AS(encode_png(Image()), InternalError);
}

TEST_CASE("normalise: channels first, (byte / 255 - mean) / deviation") {
  Image picture(2, 1);
  picture.rgb = {0, 51, 255, 255, 102, 0};
  const auto out = normalise(picture, {.mean = {0.5, 0.2, 0.0}, .deviation = {0.5, 0.1, 2.0}});
  const std::vector<float> want{-1.0F, 1.0F, 0.0F, 2.0F, 0.5F, 0.0F};
  for (size_t i = 0; i < want.size(); ++i) CHECK(out[i] == doctest::Approx(want[i]).epsilon(1e-6));
}

TEST_CASE(
    "encode_webp: lossless comes back to the bit, lossy nearly, equal pictures give equal bytes") {
  const Image picture = mm::image::testing::noise_picture(37, 21, 3);
  const std::string exact = encode_webp(picture, {.lossless = true});
  CHECK(exact == encode_webp(picture, {.lossless = true}));
  const auto decoded = decode(as_bytes(exact));
  REQUIRE(decoded.ok());
  CHECK(decoded->image == picture);
  Image flat(40, 40);
  for (uint8_t& byte : flat.rgb) byte = 120;
  const std::string lossy = encode_webp(flat, {.quality = 90});
  const auto near = decode(as_bytes(lossy));
  REQUIRE(near.ok());
  CHECK(mm::image::testing::max_difference(near->image, flat) <= 3);
  CHECK_THROWS_AS(encode_webp(Image(16384, 1)), InternalError);
}
