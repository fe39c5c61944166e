#include "lib/image/prepare.h"

#include <doctest/doctest.h>

#include "lib/image/encode.h"
#include "lib/image/tiling.h"
#include "tests/image/fixtures.h"

using namespace mm::image;
using mm::image::testing::fixture;
using mm::image::testing::noise_picture;

TEST_CASE(
    "decode_prepared: equals decode then prepare for every field picture that decodes and every "
    "geometry") {
  for (const auto& [name, want] : mm::image::testing::field_expectations().at("files").items()) {
    if (want.at("outcome") != "decode") continue;
    const std::string file = fixture("field/" + name);
    for (const Geometry geometry : {Geometry::kCrop, Geometry::kPad, Geometry::kSquash}) {
      const Preparation preparation{.geometry = geometry, .side = 40};
      const auto together = decode_prepared(as_bytes(file), preparation);
      const auto apart = decode(as_bytes(file));
      REQUIRE(together.ok());
      REQUIRE(apart.ok());
      CAPTURE(name);
      CHECK(together->image == prepare(apart->image, preparation));
      CHECK(together->notes == apart->notes);
    }
  }
}

TEST_CASE("decode_prepared: equals decode then prepare in either order of passes, which differ") {
  // High enough that Pillow 13 goes down first, whatever the geometry makes of it.
  const Image picture = noise_picture(61, 300, 3);
  const std::string file = encode_png(picture);
  for (const Geometry geometry :
       {Geometry::kCrop, Geometry::kPad, Geometry::kSquash, Geometry::kAdm, Geometry::kAnyRes,
        Geometry::kInternVl, Geometry::kQwen, Geometry::kBucket, Geometry::kBuckets}) {
    CAPTURE(static_cast<int>(geometry));
    Preparation p{.geometry = geometry, .side = 28};
    p.grid_points = {{28, 56}, {56, 28}};
    p.buckets = {{28, 56}};
    p.max_pixels = 4 * 28 * 28;
    const auto before = decode_prepared(as_bytes(file), p);
    p.order = PassOrder::kPillow13;
    const auto now = decode_prepared(as_bytes(file), p);
    REQUIRE(before.ok());
    REQUIRE(now.ok());
    CHECK(now->image == prepare_tiles(picture, p));
    // Both sides of a padded square lose the same.
    CHECK((now->image == before->image) == (geometry == Geometry::kPad));
  }
}

TEST_CASE("decode_prepared: damaged pictures fail as they do in decode") {
  for (const std::string name : {"truncated.jpg", "truncated.png", "bad_crc.png", "bomb.jpg",
                                 "empty.jpg", "html_named.jpg"}) {
    const std::string file = fixture("field/" + name);
    const auto together = decode_prepared(as_bytes(file), {});
    REQUIRE_FALSE(together.ok());
    CHECK(together.failure().kind == decode(as_bytes(file)).failure().kind);
  }
}

TEST_CASE("decode_prepared: a thin picture whose padded square breaks the limit is refused") {
  const std::string file = encode_png(noise_picture(3000, 1, 1));
  const DecodeOptions options{.limits = {.max_pixels = 1'000'000}};
  CHECK(decode_prepared(as_bytes(file), {.geometry = Geometry::kCrop, .side = 8}, options).ok());
  const auto padded =
      decode_prepared(as_bytes(file), {.geometry = Geometry::kPad, .side = 8}, options);
  REQUIRE_FALSE(padded.ok());
  CHECK(padded.failure().kind == "too_large");
}
