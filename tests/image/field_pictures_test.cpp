#include <doctest/doctest.h>
#include <png.h>
#include <sys/resource.h>

#include <cmath>
#include <set>

#include "lib/image/decode.h"
#include "lib/image/geometry.h"
#include "tests/image/fixtures.h"

using namespace mm;
using namespace mm::image;
using mm::image::testing::field_expectations;
using mm::image::testing::fixture;

namespace {

Result<Decoded> decode_field(const std::string& name) {
  static std::string file;
  file = fixture("field/" + name);
  return decode(as_bytes(file));
}

void check_pixels(const Image& image, const Json& want) {
  const double tolerance = want.value("tol_pixel", 0.0);
  for (const Json& pixel : want.at("pixels")) {
    const int32_t x = pixel[0], y = pixel[1];
    CAPTURE(x);
    CAPTURE(y);
    for (int c = 0; c < 3; ++c)
      CHECK(std::abs(image.at(x, y)[c] - pixel[2][c].get<int>()) <= tolerance);
  }
  if (!want.contains("mean_rgb")) return;
  for (int c = 0; c < 3; ++c) {
    double sum = 0;
    for (size_t i = c; i < image.rgb.size(); i += 3) sum += image.rgb[i];
    CHECK(std::fabs(sum / (image.rgb.size() / 3.0) - want["mean_rgb"][c].get<double>()) <=
          want["tol_mean"].get<double>());
  }
}

// Decodes a field picture and compares it with expected.json.
Decoded check_decodes(const std::string& name) {
  CAPTURE(name);
  const Json& want = field_expectations().at("files").at(name);
  auto decoded = decode_field(name);
  REQUIRE_MESSAGE(decoded.ok(), decoded.failure().message);
  CHECK(decoded->image.width == want["size"][0].get<int>());
  CHECK(decoded->image.height == want["size"][1].get<int>());
  CHECK(decoded->header.stored.width == want["stored_size"][0].get<int>());
  check_pixels(decoded->image, want);
  return std::move(*decoded);
}

Failure check_refused(const std::string& name) {
  CAPTURE(name);
  const auto decoded = decode_field(name);
  REQUIRE_FALSE(decoded.ok());
  CHECK_FALSE(decoded.failure().message.empty());
  return decoded.failure();
}

void append_bytes(png_structp codec, png_bytep bytes, size_t count) {
  static_cast<std::string*>(png_get_io_ptr(codec))
      ->append(reinterpret_cast<const char*>(bytes), count);
}

// 256 x 256 gray samples of 16 bits: 0, 1, ... 65535.
std::string gray16_png_of_all_values() {
  std::string out;
  png_structp codec = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(codec);
  png_set_write_fn(codec, &out, append_bytes, nullptr);
  png_set_IHDR(codec, info, 256, 256, 16, PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(codec, info);
  for (int high = 0; high < 256; ++high) {
    png_byte row[512];
    for (int low = 0; low < 256; ++low) {
      row[2 * low] = static_cast<png_byte>(high);
      row[2 * low + 1] = static_cast<png_byte>(low);
    }
    png_write_row(codec, row);
  }
  png_write_end(codec, info);
  png_destroy_write_struct(&codec, &info);
  return out;
}

int64_t peak_resident_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

}  // namespace

TEST_CASE("field pictures: every file decodes to its values or is refused as expected.json says") {
  for (const auto& [name, want] : field_expectations().at("files").items()) {
    // "decode_or_refuse" leaves a choice; every one of these formats is read here.
    if (want.at("outcome").get<std::string>() == "refuse") {
      check_refused(name);
    } else {
      check_decodes(name);
    }
  }
}

TEST_CASE("C01: orientation tags turn pixels and sizes, values outside 1..8 count as 1") {
  for (const std::string name : {"exif_1.jpg", "exif_2.jpg", "exif_3.jpg", "exif_5.jpg",
                                 "exif_6.jpg", "exif_8.jpg", "exif_invalid.jpg", "exif_6.png"}) {
    const Decoded decoded = check_decodes(name);
    CHECK(decoded.header.upright == Size{decoded.image.width, decoded.image.height});
    const std::string file = fixture("field/" + name);
    const auto header = probe(as_bytes(file));
    REQUIRE(header.ok());
    CHECK(header->upright == decoded.header.upright);
  }
}

TEST_CASE("C01: orientation can be ignored") {
  const std::string file = fixture("field/exif_6.jpg");
  const auto decoded = decode(as_bytes(file), {.orient = Orient::kIgnore});
  REQUIRE(decoded.ok());
  CHECK(decoded->image.width == 96);
  CHECK(decoded->image.height == 64);
}

TEST_CASE("C01: the EXIF chunk of a WebP turns it") {
  const Decoded decoded = check_decodes("exif_8.webp");
  CHECK(decoded.header.orientation == 8);
  CHECK(decoded.header.upright == Size{64, 96});
}

TEST_CASE("C02: CMYK and YCCK come out by the product form, RGB-stored and gray JPEG as they are") {
  for (const std::string name :
       {"cmyk_adobe.jpg", "ycck_adobe.jpg", "rgb_colourspace.jpg", "gray.jpg"})
    check_decodes(name);
}

TEST_CASE("C03: 16-bit samples are scaled, not clipped") {
  const Decoded gray = check_decodes("gray16.png");
  CHECK(std::set<uint8_t>(gray.image.rgb.begin(), gray.image.rgb.end()).size() > 100);
  check_decodes("rgb16.png");
}

TEST_CASE("C03: every 16-bit value v becomes round(v / 257)") {
  const std::string file = gray16_png_of_all_values();
  const auto decoded = decode(as_bytes(file));
  REQUIRE(decoded.ok());
  int wrong = 0;
  for (uint32_t v = 0; v < 65536; ++v)
    wrong += decoded->image.rgb[size_t{3} * v] != (v + 128) / 257;
  CHECK(wrong == 0);
}

TEST_CASE("C04: transparency is composited over white, wherever the file keeps it") {
  for (const std::string name : {"rgba.png", "gray_alpha.png", "palette_trns.png", "rgb_trns.png",
                                 "gray_trns.png", "palette.png", "one_bit.png"}) {
    check_decodes(name);
  }
}

TEST_CASE("C04: other backgrounds are options") {
  const std::string file = fixture("field/rgba.png");
  const auto black = decode(as_bytes(file), {.alpha = *alpha_from_name("black")});
  const auto drop = decode(as_bytes(file), {.alpha = *alpha_from_name("drop")});
  REQUIRE(black.ok());
  REQUIRE(drop.ok());
  CHECK(black->image.at(2, 2)[0] == 0);
  CHECK(drop->image.at(2, 2)[0] == 255);
  CHECK(drop->image.at(2, 2)[1] == 0);
  const auto colour = decode(as_bytes(file), {.alpha = *alpha_from_name("#0a64FF")});
  REQUIRE(colour.ok());
  CHECK(colour->image.at(2, 2)[0] == 10);
  CHECK(colour->image.at(2, 2)[1] == 100);
  CHECK(colour->image.at(2, 2)[2] == 255);
  for (const std::string word : {"", "grey", "#12345", "#1234567", "#12345g"}) {
    CHECK_FALSE(alpha_from_name(word));
  }
}

TEST_CASE(
    "C05: cut-off, empty and fake files are refused with a reason, trailing bytes are a note") {
  CHECK(check_refused("truncated.jpg").kind == "truncated");
  CHECK(check_refused("truncated.png").kind == "truncated");
  CHECK(check_refused("bad_crc.png").kind == "corrupt");
  CHECK(check_refused("empty.jpg").kind == "empty");
  CHECK(check_refused("html_named.jpg").kind == "not_an_image");
  CHECK(check_decodes("trailing_bytes.jpg").notes ==
        std::vector<std::string>{"trailing bytes: 200"});
}

TEST_CASE("C05: a JPEG cut anywhere is never taken for whole") {
  const std::string whole = fixture("field/exif_1.jpg");
  for (size_t bytes = 0; bytes < whole.size() - 2; bytes += 7) {
    CAPTURE(bytes);
    CHECK_FALSE(decode(as_bytes(std::string_view(whole).substr(0, bytes))).ok());
  }
}

TEST_CASE("C05: a PNG cut anywhere is never taken for whole") {
  for (const std::string name : {"names/22.05.png", "interlaced.png", "palette_trns.png"}) {
    const std::string whole = fixture("field/" + name);
    for (size_t bytes = 0; bytes < whole.size(); bytes += 7) {
      CAPTURE(bytes);
      CHECK_FALSE(decode(as_bytes(std::string_view(whole).substr(0, bytes))).ok());
    }
  }
}

TEST_CASE("C06: a header that claims a giant picture is refused before memory is taken") {
  const int64_t before = peak_resident_kib();
  const Failure failure = check_refused("bomb.jpg");
  CHECK(failure.kind == "too_large");
  CHECK(failure.message.find("65500 x 65500") != std::string::npos);
  CHECK(failure.message.find("178956970") != std::string::npos);
  CHECK(peak_resident_kib() - before < 64 * 1024);
}

TEST_CASE(
    "C06: with the limit raised, the giant fails on its missing data and still takes little "
    "memory") {
  const std::string file = fixture("field/bomb.jpg");
  const int64_t before = peak_resident_kib();
  const auto decoded = decode(as_bytes(file), {.limits = {.max_pixels = uint64_t{1} << 33}});
  REQUIRE_FALSE(decoded.ok());
  CHECK(peak_resident_kib() - before < 64 * 1024);
}

TEST_CASE("C06: pixel and side limits are settings") {
  const std::string file = fixture("field/exif_1.jpg");
  CHECK(probe(as_bytes(file), {.max_pixels = 96 * 64}).ok());
  CHECK(probe(as_bytes(file), {.max_pixels = 96 * 64 - 1}).failure().kind == "too_large");
  CHECK(probe(as_bytes(file), {.max_side = 95}).failure().message.find("max_side") !=
        std::string::npos);
}

TEST_CASE("C07: the format is decided by content, whatever the name") {
  for (const std::string name :
       {"données – 北京 №1.jpg", "names/UPPER CASE.JPEG", "names/22.05.png"})
    check_decodes(name);
  CHECK(check_decodes("names/png_inside.jpg").header.format == Format::kPng);
}

TEST_CASE("C08: shrinking widens the kernel") {
  for (const Json& want : field_expectations().at("resize")) {
    const auto name = want.at("file").get<std::string>();
    CAPTURE(name);
    const auto decoded = decode_field(name);
    REQUIRE(decoded.ok());
    check_pixels(resize(decoded->image, {want["target"][0], want["target"][1]}, Filter::kBicubic),
                 want);
  }
}

TEST_CASE("C09: an odd gap loses no pixel") {
  const Placement tall = letterbox_placement({950, 1256}, {768, 768});
  CHECK(tall.inner == Box{93, 0, 581, 768});
  CHECK(tall.canvas.width - tall.inner.left - tall.inner.width == 94);
  const Placement wide = letterbox_placement({1256, 950}, {768, 768});
  CHECK(wide.inner == Box{0, 93, 768, 581});
  CHECK(wide.canvas.height - wide.inner.top - wide.inner.height == 94);
}

TEST_CASE("C09: a square pad of 5 x 2 has one row above and two below in the mean colour") {
  const Image in(5, 2);  // black
  const Colour colour = mean_colour({0.48145466, 0.4578275, 0.40821073});
  CHECK(colour == Colour{122, 116, 104});
  const Image out = pad(in, square_placement({5, 2}), colour);
  REQUIRE(out.height == 5);
  for (int32_t y = 0; y < 5; ++y) {
    const bool inside = y == 1 || y == 2;
    CHECK(out.at(3, y)[0] == (inside ? 0 : 122));
    CHECK(out.at(3, y)[2] == (inside ? 0 : 104));
  }
}
