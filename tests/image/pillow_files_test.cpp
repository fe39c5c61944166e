// The odd files of Pillow's source archive, where MM_PILLOW_IMAGES names its Tests/images;
// scripts/long-tests.sh fetches it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "lib/base/env.h"
#include "lib/base/file.h"
#include "lib/image/decode.h"
#include "tests/image/fixtures.h"

using namespace mm;
using namespace mm::image;
namespace fs = std::filesystem;

namespace {

std::optional<fs::path> pillow_images() {
  const auto directory = env::get("MM_PILLOW_IMAGES");
  if (!directory) {
    MESSAGE("not run: MM_PILLOW_IMAGES is not set; scripts/long-tests.sh sets it");
    return std::nullopt;
  }
  return fs::path(*directory);
}

Result<Decoded> decode_file(const fs::path& path) {
  const std::string file = read_file(path);
  return decode(as_bytes(file));
}

double mean_difference(const Image& a, const Image& b) {
  REQUIRE(a.rgb.size() == b.rgb.size());
  double sum = 0;
  for (size_t i = 0; i < a.rgb.size(); ++i) sum += std::abs(a.rgb[i] - b.rgb[i]);
  return sum / static_cast<double>(a.rgb.size());
}

}  // namespace

TEST_CASE("Pillow's files: the damaged ones are refused with a kind") {
  const auto images = pillow_images();
  if (!images) return;
  for (const auto& [name, kind] : {std::pair{"truncated_jpeg.jpg", "truncated"},
                                   {"ultrahdr.jpg", "truncated"},
                                   {"broken.png", ""},
                                   {"broken_data_stream.png", ""},
                                   {"truncated_image.png", "truncated"},
                                   {"truncated_end_chunk.png", ""},
                                   {"apng/syntax_num_frames_zero.png", ""}}) {
    CAPTURE(name);
    const auto decoded = decode_file(*images / name);
    REQUIRE_FALSE(decoded.ok());
    if (*kind != '\0') CHECK(decoded.failure().kind == kind);
  }
}

TEST_CASE("Pillow's files: stray bytes and damage up to the next restart marker are a warning") {
  const auto images = pillow_images();
  if (!images) return;
  for (const std::string name :
       {"hopper_bad_exif.jpg", "jpeg_ff00_header.jpg", "junk_jpeg_header.jpg",
        "photoshop-200dpi-broken.jpg", "truncated_app14.jpg"}) {
    CAPTURE(name);
    const auto decoded = decode_file(*images / name);
    REQUIRE_MESSAGE(decoded.ok(), decoded.failure().message);
    REQUIRE(decoded->damage.size() == 1);
    MESSAGE(name << ": " << decoded->damage[0].message);
    // Pillow itself shows this one in black and white stripes.
    const bool inside = name == "hopper_bad_exif.jpg";
    CHECK(decoded->damage[0].kind == (inside ? "damaged_part" : "stray_bytes"));
  }
}

TEST_CASE("Pillow's files: chunks that are not looked at do no harm") {
  const auto images = pillow_images();
  if (!images) return;
  for (const std::string name :
       {"png_decompression_dos.png", "unknown_compression_method.png", "apng/chunk_no_fctl.png"}) {
    CAPTURE(name);
    const auto decoded = decode_file(*images / name);
    CHECK_MESSAGE(decoded.ok(), decoded.failure().message);
  }
}

TEST_CASE("Pillow's files: every orientation comes out like the upright picture") {
  const auto images = pillow_images();
  if (!images) return;
  const auto upright = decode_file(*images / "hopper.jpg");
  REQUIRE(upright.ok());
  for (int orientation = 2; orientation <= 8; ++orientation) {
    const fs::path path = *images / fmt::format("hopper_orientation_{}.jpg", orientation);
    CAPTURE(orientation);
    const auto turned = decode_file(path);
    REQUIRE(turned.ok());
    CHECK(turned->header.orientation == orientation);
    CHECK(mean_difference(turned->image, upright->image) < 8);
  }
}

TEST_CASE("Pillow's files: all of them decode or are refused by kind, none is worse") {
  const auto images = pillow_images();
  if (!images) return;
  std::map<std::string, int> outcomes;
  for (const auto& entry : fs::recursive_directory_iterator(*images)) {
    if (!entry.is_regular_file()) continue;
    CAPTURE(entry.path().string());
    const auto decoded = decode_file(entry.path());
    if (!decoded.ok()) CHECK_FALSE(decoded.failure().message.empty());
    ++outcomes[decoded.ok() ? "decoded" : decoded.failure().kind];
  }
  for (const auto& [kind, count] : outcomes) MESSAGE(kind << ": " << count);
  CHECK(outcomes["decoded"] > 400);
}
