#include <doctest/doctest.h>
#include <webp/encode.h>

#include "lib/image/decode.h"
#include "tests/image/fixtures.h"
#include "tests/image/made_files.h"

using namespace mm;
using namespace mm::image;
using mm::image::testing::fixture;
using mm::image::testing::max_difference;
using mm::image::testing::noise_picture;

namespace {

std::string take(uint8_t* bytes, size_t count) {
  std::string out(reinterpret_cast<const char*>(bytes), count);
  WebPFree(bytes);
  return out;
}

std::string lossless(const Image& image) {
  uint8_t* bytes = nullptr;
  const size_t count = WebPEncodeLosslessRGB(image.rgb.data(), image.width, image.height,
                                             static_cast<int>(image.row_bytes()), &bytes);
  return take(bytes, count);
}

std::string lossy(const Image& image) {
  uint8_t* bytes = nullptr;
  const size_t count = WebPEncodeRGB(image.rgb.data(), image.width, image.height,
                                     static_cast<int>(image.row_bytes()), 90, &bytes);
  return take(bytes, count);
}

}  // namespace

TEST_CASE("webp: lossless pictures come back to the bit, lossy ones nearly") {
  for (const auto& [w, h] : {std::pair{1, 1}, {17, 5}, {64, 33}}) {
    Image picture = noise_picture(w, h, 1);
    const std::string exact = lossless(picture);
    const auto decoded = decode(as_bytes(exact));
    REQUIRE(decoded.ok());
    CHECK(decoded->header.stored == Size{w, h});
    CHECK(decoded->image == picture);
    for (size_t i = 0; i < picture.rgb.size(); ++i) picture.rgb[i] = uint8_t{90};
    const std::string near = lossy(picture);
    const auto flat = decode(as_bytes(near));
    REQUIRE(flat.ok());
    CHECK(max_difference(flat->image, picture) <= 3);
  }
}

TEST_CASE("webp: alpha is composited over the colour asked for") {
  const std::vector<uint8_t> rgba = {200, 0, 0, 0, 200, 0, 0, 255, 200, 0, 0, 51};
  uint8_t* bytes = nullptr;
  WebPConfig config;
  REQUIRE(WebPConfigInit(&config) != 0);
  config.lossless = 1;
  config.exact = 1;  // keeps the colour under zero alpha
  WebPPicture picture;
  REQUIRE(WebPPictureInit(&picture) != 0);
  picture.use_argb = 1;
  picture.width = 3;
  picture.height = 1;
  WebPMemoryWriter writer;
  WebPMemoryWriterInit(&writer);
  picture.writer = WebPMemoryWrite;
  picture.custom_ptr = &writer;
  REQUIRE(WebPPictureImportRGBA(&picture, rgba.data(), 12) != 0);
  REQUIRE(WebPEncode(&config, &picture) != 0);
  bytes = writer.mem;
  const std::string file = take(bytes, writer.size);
  WebPPictureFree(&picture);
  const auto white = decode(as_bytes(file));
  REQUIRE(white.ok());
  CHECK(white->image.rgb == std::vector<uint8_t>{255, 255, 255, 200, 0, 0, 244, 204, 204});
  const auto drop = decode(as_bytes(file), {.alpha = {.drop = true}});
  REQUIRE(drop.ok());
  CHECK(drop->image.rgb == std::vector<uint8_t>{200, 0, 0, 200, 0, 0, 200, 0, 0});
}

TEST_CASE("webp: cut anywhere it is never taken for whole") {
  for (const std::string& whole :
       {fixture("field/exif_8.webp"), fixture("field/animated.webp"),
        lossless(noise_picture(20, 9, 2)), lossy(noise_picture(20, 9, 2))}) {
    for (size_t bytes = 0; bytes < whole.size(); bytes += 3) {
      CAPTURE(bytes);
      CHECK_FALSE(decode(as_bytes(std::string_view(whole).substr(0, bytes))).ok());
    }
  }
}

TEST_CASE("webp: trailing bytes are a note, an animation says so") {
  const std::string file = lossless(noise_picture(4, 4, 1)) + "xyz";
  const auto decoded = decode(as_bytes(file));
  REQUIRE(decoded.ok());
  CHECK(decoded->notes == std::vector<std::string>{"trailing bytes: 3"});
  const std::string animation = fixture("field/animated.webp");
  const auto first = decode(as_bytes(animation));
  REQUIRE(first.ok());
  CHECK(first->notes == std::vector<std::string>{"first picture of several"});
}

TEST_CASE("webp: a canvas that its frame contradicts, and a giant, are refused") {
  std::string file = fixture("field/animated.webp");
  const size_t canvas = file.find("VP8X") + 12;
  file[canvas] = 3;  // 4 pixels wide
  CHECK_FALSE(decode(as_bytes(file)).ok());
  file.replace(canvas, 6, "\xFF\xFF\xFF\xFF\xFF\xFF");
  CHECK(decode(as_bytes(file)).failure().kind == "too_large");
}
