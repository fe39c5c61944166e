#include <doctest/doctest.h>

#include "lib/base/random.h"
#include "lib/image/decode.h"
#include "tests/image/fixtures.h"

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

}  // namespace

TEST_CASE("decode: damaged pictures of every kind are decoded or refused, never worse") {
  uint64_t seed = 0;
  for (const auto& [name, want] : testing::field_expectations().at("files").items()) {
    const std::string file = fixture("field/" + name);
    if (file.empty()) continue;
    CAPTURE(name);
    CHECK(decode_damaged_copies(file, ++seed, 300) <= 300);
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
