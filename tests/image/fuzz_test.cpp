#include <doctest/doctest.h>

#include "lib/base/env.h"
#include "lib/base/random.h"
#include "lib/image/decode.h"
#include "lib/image/encode.h"
#include "tests/image/fixtures.h"
#include "tests/image/made_files.h"

using namespace mm;
using namespace mm::image;
using mm::image::testing::fixture;

namespace {

// Damaged copies of a file: one to four bytes changed, or the end cut. Returns how many still
// decoded.
int decode_damaged_copies(const std::string& whole, uint64_t seed, int copies) {
  const Philox random(seed, "picture fuzz");
  const DecodeOptions options{.limits = {.max_pixels = 4'000'000}};
  int decoded = 0;
  for (int i = 0; i < copies; ++i) {
    const Philox draw = random.child(static_cast<uint64_t>(i));
    std::string file = whole;
    const uint64_t changes = 1 + draw.below(0, 4);
    for (uint64_t k = 0; k < changes; ++k)
      file[draw.below(2 * k + 1, file.size())] = static_cast<char>(draw.below(2 * k + 2, 256));
    if (draw.below(100, 4) == 0) file.resize(draw.below(101, file.size()));
    const auto result = decode(as_bytes(file), options);
    if (!result.ok()) {
      CHECK_FALSE(result.failure().kind.empty());
      continue;
    }
    ++decoded;
    CHECK(result->image.rgb.size() ==
          result->image.row_bytes() * static_cast<size_t>(result->image.height));
  }
  return decoded;
}

// A few hundred copies a file take seconds; MM_LONG=1 takes minutes.
int copies_per_file() { return env::get("MM_LONG") ? 20'000 : 300; }

}  // namespace

TEST_CASE("decode: damaged pictures of every kind are decoded or refused, never worse") {
  uint64_t seed = 0;
  for (const auto& [name, want] : testing::field_expectations().at("files").items()) {
    const std::string file = fixture("field/" + name);
    if (file.empty()) continue;
    CAPTURE(name);
    CHECK(decode_damaged_copies(file, ++seed, copies_per_file()) <= copies_per_file());
  }
}

TEST_CASE("decode: damaged GIF, WebP and arithmetic JPEG made here, the same") {
  const Image picture = testing::noise_picture(24, 17, 1);
  testing::GifRecipe gif{.screen = {9, 9}, .frame = {1, 2, 7, 5}, .transparent = 2};
  gif.indices.assign(35, 1);
  gif.interlaced = true;
  uint64_t seed = 1000;
  for (const std::string& file :
       {testing::make_gif(gif), encode_webp(picture), encode_webp(picture, {.lossless = true}),
        testing::arithmetic_jpeg(picture)}) {
    CHECK(decode_damaged_copies(file, ++seed, copies_per_file()) <= copies_per_file());
  }
}

TEST_CASE("probe and decode: damage in the first bytes of every format") {
  const Philox random(77, "header fuzz");
  const DecodeOptions options{.limits = {.max_pixels = 1'000'000}};
  for (const auto& [name, want] : testing::field_expectations().at("files").items()) {
    const std::string whole = fixture("field/" + name);
    if (whole.size() < 64) continue;
    CAPTURE(name);
    for (uint64_t i = 0; i < static_cast<uint64_t>(copies_per_file()) / 3; ++i) {
      std::string file = whole;
      file[random.below(2 * i, 64)] = static_cast<char>(random.below(2 * i + 1, 256));
      const auto header = probe(as_bytes(file), options.limits);
      const auto decoded = decode(as_bytes(file), options);
      if (decoded.ok()) CHECK(header.ok());
    }
  }
}

TEST_CASE("decode: a PNG with any single bit of its pixel data flipped is refused") {
  const std::string whole = fixture("field/names/22.05.png");
  const size_t data = whole.find("IDAT") + 4;
  for (size_t at = data; at < whole.size() - 12; at += 5) {
    std::string file = whole;
    file[at] = static_cast<char>(file[at] ^ 0x10);
    CAPTURE(at);
    CHECK_FALSE(decode(as_bytes(file)).ok());
  }
}
