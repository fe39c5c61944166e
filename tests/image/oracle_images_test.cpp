#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "lib/image/decode.h"
#include "lib/image/geometry.h"
#include "lib/image/normalise.h"
#include "tests/image/fixtures.h"

using namespace mm;
using namespace mm::image;
using mm::image::testing::OracleTensors;

namespace {

constexpr std::array kPictures = {"wide", "upscaled", "tall", "downscaled", "alpha", "gray"};

Image source(const OracleTensors& tensors, const std::string& name) {
  return tensors.picture(name == "alpha" ? "alpha/on_white" : name + "/source");
}

}  // namespace

TEST_CASE("oracle images: plain resizes equal Pillow's to the bit with every filter") {
  const OracleTensors tensors;
  for (const std::string name : kPictures) {
    for (const std::string filter : {"nearest", "box", "bilinear", "lanczos"}) {
      CAPTURE(name);
      CAPTURE(filter);
      const Image want = tensors.picture(name + "/" + filter + "_97x48");
      const Image in = source(tensors, name);
      CHECK(resize(in, {97, 48}, *filter_from_name(filter)) == want);
      CHECK(resize_reference(in, {97, 48}, *filter_from_name(filter)) == want);
    }
  }
}

TEST_CASE(
    "oracle images: shortest edge, bicubic and centre crop equal the slow processor's to the bit") {
  const OracleTensors tensors;
  for (const std::string name : kPictures) {
    for (const int32_t side : {336, 97}) {
      CAPTURE(name);
      CAPTURE(side);
      const Image out = prepare(source(tensors, name), {.geometry = Geometry::kCrop, .side = side});
      CHECK(out == tensors.picture(fmt::format("{}/crop{}", name, side)));
    }
  }
}

TEST_CASE("oracle images: padding to a square equals LLaVA's to the bit") {
  const OracleTensors tensors;
  for (const std::string name : kPictures) {
    for (const int32_t side : {336, 97}) {
      const std::string key = fmt::format("{}/pad{}", name, side);
      if (!tensors.has(key)) continue;
      CAPTURE(key);
      CHECK(prepare(source(tensors, name), {.geometry = Geometry::kPad, .side = side}) ==
            tensors.picture(key));
    }
  }
}

TEST_CASE("oracle images: normalised values lie within 1e-6") {
  const OracleTensors tensors;
  for (const std::string name : kPictures) {
    for (const int32_t side : {336, 97}) {
      const std::string key = fmt::format("{}/normalised{}_every16", name, side);
      CAPTURE(key);
      const auto values = normalise(prepare(source(tensors, name), {.side = side}));
      const auto bytes = tensors.bytes(key);
      std::vector<float> want(bytes.size() / 4);
      std::memcpy(want.data(), bytes.data(), bytes.size());
      double worst = 0;
      size_t at = 0;
      for (int32_t c = 0; c < 3; ++c) {
        for (int32_t y = 0; y < side; y += 16) {
          for (int32_t x = 0; x < side; x += 16, ++at) {
            worst = std::max(
                worst, std::fabs(double{values[(size_t{1} * c * side + y) * side + x]} - want[at]));
          }
        }
      }
      CHECK(at == want.size());
      CHECK(worst < 1e-6);
    }
  }
}

TEST_CASE("oracle images: JPEG pixels equal libjpeg-turbo's as Pillow uses it") {
  const OracleTensors tensors;
  for (const std::string name :
       {"rgb420", "rgb422", "rgb444", "progressive", "gray", "orientation6"}) {
    CAPTURE(name);
    const std::string file = mm::image::testing::fixture("oracles/images/" + name + ".jpg");
    const auto decoded = decode(as_bytes(file), {.orient = Orient::kIgnore});
    REQUIRE(decoded.ok());
    CHECK(decoded->image == tensors.picture("jpeg/" + name));
    CHECK(decoded->header.orientation == (name == "orientation6" ? 6 : 1));
  }
}

TEST_CASE("oracle images: the truncated JPEG is reported as truncated") {
  const std::string file = mm::image::testing::fixture("oracles/images/truncated.jpg");
  const auto decoded = decode(as_bytes(file));
  REQUIRE_FALSE(decoded.ok());
  CHECK(decoded.failure().kind == "truncated");
}
