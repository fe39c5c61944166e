#include "lib/data/picture_packer.h"

#include <doctest/doctest.h>

#include "lib/image/decode.h"
#include "lib/image/encode.h"
#include "lib/image/exif.h"
#include "lib/image/tiling.h"
#include "tests/data/toy_source.h"

using namespace mm::data;
using namespace mm::data::test;
using mm::image::as_bytes;
using mm::image::Image;

namespace {

Image ramp(int32_t width, int32_t height) {
  Image image(width, height);
  for (size_t i = 0; i < image.rgb.size(); ++i) image.rgb[i] = static_cast<uint8_t>(i / 11);
  return image;
}

PictureOptions stored_as(const std::string& storage, int32_t side = 32) {
  PictureOptions options;
  options.side = side;
  options.patch = 8;
  options.storage = storage;
  return options;
}

PackedPicture packed(const std::string& file, const PictureOptions& options) {
  auto picture = PicturePacker(options).pack(file);
  REQUIRE_MESSAGE(picture.ok(), picture.failure().message);
  return std::move(*picture);
}

}  // namespace

TEST_CASE(
    "picture packer: a JPEG whose pixels do not change is stored as it is, for jpeg and source") {
  const std::string jpeg = mm::image::encode_jpeg(ramp(32, 32), {.quality = 80});
  for (const std::string storage : {"jpeg", "source"}) {
    CHECK(packed(jpeg, stored_as(storage)).bytes == jpeg);
    CHECK(packed(jpeg, stored_as(storage)).codec == PictureCodec::kJpeg);
  }
  const PackedPicture raw = packed(jpeg, stored_as("raw"));
  CHECK(raw.codec == PictureCodec::kRaw);
  CHECK(raw.bytes.size() == 32 * 32 * 3);
}

TEST_CASE("picture packer: a JPEG that is resized or turned is made anew") {
  const std::string jpeg = mm::image::encode_jpeg(ramp(40, 32), {.quality = 80});
  const PackedPicture resized = packed(jpeg, stored_as("jpeg"));
  CHECK(resized.codec == PictureCodec::kJpeg);
  CHECK(resized.bytes != jpeg);
  CHECK(packed(jpeg, stored_as("source")).codec == PictureCodec::kRaw);
  // Stored 96 x 64 with tag 6; as 64 x 96 it is the same size after cropping to 64.
  const std::string turned = mm::read_file(field_picture("exif_6.jpg"));
  PictureOptions bucket = stored_as("source");
  bucket.geometry = "bucket";
  bucket.buckets = "64x96";
  CHECK(packed(turned, bucket).codec == PictureCodec::kRaw);
  bucket.buckets = "96x64";
  bucket.orient = "ignore";
  CHECK(packed(turned, bucket).bytes == turned);
}

TEST_CASE("picture packer: a told orientation turns files without a tag, and only those") {
  PictureOptions options = stored_as("raw");
  const std::string bare = mm::image::encode_png(ramp(40, 32));
  const PicturePacker packer(options);
  const auto turned = mm::image::apply_orientation(ramp(40, 32), 6);
  CHECK(packer.pack(bare, 6)->bytes == packed(mm::image::encode_png(turned), options).bytes);
  CHECK(packer.pack(bare, 6)->bytes != packer.pack(bare)->bytes);
  const std::string tagged = mm::read_file(field_picture("exif_6.jpg"));
  CHECK(packer.pack(tagged, 8)->bytes == packer.pack(tagged)->bytes);
  options.orient = "ignore";
  CHECK(PicturePacker(options).pack(bare, 6)->bytes == packer.pack(bare)->bytes);
}

TEST_CASE("picture packer: source keeps a WebP without transparency, and makes PNG raw") {
  const std::string webp = mm::image::encode_webp(ramp(32, 32), {.lossless = true});
  const PackedPicture kept = packed(webp, stored_as("source"));
  CHECK(kept.codec == PictureCodec::kWebp);
  CHECK(kept.bytes == webp);
  CHECK(packed(mm::image::encode_png(ramp(32, 32)), stored_as("source")).codec ==
        PictureCodec::kRaw);
}

TEST_CASE("picture packer: webp-lossless gives back the raw pixels, webp nearly") {
  const std::string png = mm::image::encode_png(ramp(50, 40));
  const PackedPicture raw = packed(png, stored_as("raw"));
  const PackedPicture exact = packed(png, stored_as("webp-lossless"));
  const auto decoded = mm::image::decode(as_bytes(exact.bytes));
  REQUIRE(decoded.ok());
  CHECK(std::string(decoded->image.rgb.begin(), decoded->image.rgb.end()) == raw.bytes);
  const PackedPicture lossy = packed(png, stored_as("webp"));
  CHECK(lossy.codec == PictureCodec::kWebp);
  CHECK(lossy.bytes != exact.bytes);
}

TEST_CASE("picture packer: tiles are one file each, and their grid is known from the header") {
  PictureOptions options = stored_as("webp-lossless", 16);
  options.geometry = "anyres";
  const Image picture = ramp(60, 25);
  const std::string png = mm::image::encode_png(picture);
  const PicturePacker packer(options);
  CHECK(packer.varied());
  const auto grid = packer.grid_of(png);
  REQUIRE(grid.ok());
  CHECK(grid->columns == 3);
  CHECK(grid->rows == 1);
  CHECK(grid->tiles == 4);
  CHECK(grid->original_width == 60);
  const PackedPicture stored = packed(png, options);
  REQUIRE(stored.grid.has_value());
  CHECK(*stored.grid == *grid);
  const Image want = mm::image::prepare_tiles(picture, preparation_of(options));
  const auto files = split_tiles(stored.bytes, 4);
  for (size_t i = 0; i < files.size(); ++i) {
    const auto tile = mm::image::decode(as_bytes(files[i]));
    REQUIRE(tile.ok());
    CHECK(tile->image == mm::image::crop(want, {0, static_cast<int32_t>(16 * i), 16, 16}));
  }
}

TEST_CASE("picture packer: background, orientation and limits are options") {
  const std::string rgba = mm::read_file(field_picture("rgba.png"));
  PictureOptions options = stored_as("raw", 64);
  const std::string white = packed(rgba, options).bytes;
  options.alpha = "#102030";
  CHECK(packed(rgba, options).bytes != white);
  options.limits.max_side = 95;
  CHECK(PicturePacker(options).pack(rgba).failure().kind == "too_large");
  options.limits = {.min_side = 65};
  CHECK(PicturePacker(options).pack(rgba).failure().kind == "too_small");
  options.limits = {.max_aspect = 1.4};
  CHECK(PicturePacker(options).pack(rgba).failure().kind == "too_thin");
}
