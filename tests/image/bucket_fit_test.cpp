#include "lib/image/bucket_fit.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "lib/base/random.h"
#include "lib/image/bucket_table.h"
#include "lib/image/encode.h"
#include "lib/image/prepare.h"
#include "lib/image/tiling.h"

using namespace mm::image;

namespace {

struct Choice {
  Size in, bucket;
};

BucketFit in_sdxl(Size in) { return fit_bucket(in, bucket_preset("sdxl")); }

}  // namespace

TEST_CASE("C23: pictures go to the bucket of the nearest ratio") {
  const Choice choices[] = {
      {{1050, 1080}, {1024, 1024}}, {{3072, 3000}, {1024, 1024}}, {{4000, 3000}, {1152, 896}},
      {{3000, 4000}, {896, 1152}},  {{1920, 1080}, {1344, 768}},  {{512, 768}, {832, 1216}},
      {{3000, 1000}, {1536, 640}},  {{2560, 1080}, {1536, 640}},
  };
  for (const Choice& choice : choices) {
    CAPTURE(choice.in.width);
    CHECK(in_sdxl(choice.in).bucket == choice.bucket);
  }
}

TEST_CASE("C23: pictures are scaled to cover, then cut to the middle") {
  CHECK(in_sdxl({4000, 3000}).scaled == Size{1195, 896});
  CHECK(in_sdxl({4000, 3000}).crop == Box{21, 0, 1152, 896});
  CHECK(in_sdxl({1920, 1080}).scaled == Size{1365, 768});
  CHECK(in_sdxl({1920, 1080}).crop == Box{10, 0, 1344, 768});
  CHECK(in_sdxl({512, 768}).scaled == Size{832, 1248});
  CHECK(in_sdxl({512, 768}).crop == Box{0, 16, 832, 1216});
  CHECK(in_sdxl({512, 768}).scale == doctest::Approx(1.625));
  CHECK(in_sdxl({3000, 1000}).scaled == Size{1920, 640});
  CHECK(in_sdxl({3000, 1000}).crop == Box{192, 0, 1536, 640});
}

TEST_CASE("fit_bucket: of several resolutions the largest without enlargement") {
  std::vector<Size> buckets = bucket_preset("pixart-1024");
  for (const char* name : {"pixart-256", "pixart-512"}) {
    const std::vector<Size> more = bucket_preset(name);
    buckets.insert(buckets.end(), more.begin(), more.end());
  }
  CHECK(fit_bucket({1024, 1024}, buckets).bucket == Size{1024, 1024});
  CHECK(fit_bucket({1023, 1023}, buckets).bucket == Size{512, 512});
  CHECK(fit_bucket({4000, 3000}, buckets).bucket == Size{1152, 896});
  CHECK(fit_bucket({300, 300}, buckets).bucket == Size{256, 256});
  CHECK(fit_bucket({300, 300}, buckets).scale < 1);
  CHECK(fit_bucket({100, 100}, buckets).bucket == Size{256, 256});
  CHECK(fit_bucket({100, 100}, buckets).scale == doctest::Approx(2.56));
}

TEST_CASE("fit_bucket: any size gives a cut inside a picture that covers its bucket") {
  const std::vector<Size> buckets =
      derive_buckets({.pixels = 512 * 512, .multiple = 32, .ratio = 3});
  const mm::Philox random(11, "sizes");
  for (uint64_t i = 0; i < 4000; ++i) {
    const Size in{static_cast<int32_t>(1 + random.below(2 * i, i % 5 == 0 ? 65535 : 2000)),
                  static_cast<int32_t>(1 + random.below(2 * i + 1, 2000))};
    const BucketFit fit = fit_bucket(in, buckets);
    CHECK(std::ranges::find(buckets, fit.bucket) != buckets.end());
    CHECK(fit.crop.left >= 0);
    CHECK(fit.crop.top >= 0);
    CHECK(fit.crop.left + fit.crop.width <= fit.scaled.width);
    CHECK(fit.crop.top + fit.crop.height <= fit.scaled.height);
    CHECK((fit.scaled.width == fit.bucket.width || fit.scaled.height == fit.bucket.height));
  }
}

TEST_CASE("bucket tables: PixArt has forty ratios, halved and quartered, SDXL nine shapes") {
  CHECK(bucket_preset("sdxl").size() == 9);
  CHECK(bucket_preset("other").empty());
  const std::vector<Size> large = bucket_preset("pixart-1024"), small = bucket_preset("pixart-256");
  REQUIRE(large.size() == 40);
  REQUIRE(small.size() == 40);
  for (size_t i = 0; i < 40; ++i) {
    CHECK(large[i] == Size{4 * small[i].width, 4 * small[i].height});
    CHECK(int64_t{large[i].width} * large[i].height <= 1.05 * 1024 * 1024);
  }
  CHECK(large.front() == Size{2048, 512});
  CHECK(large.back() == Size{512, 2048});
}

TEST_CASE("derive_buckets: multiples within area and ratio, each with its twin") {
  const std::vector<Size> buckets = derive_buckets({.pixels = 1024 * 1024});
  CHECK(buckets[0] == Size{1024, 1024});
  CHECK(buckets[1] == Size{1088, 960});
  CHECK(buckets[2] == Size{960, 1088});
  std::set<std::pair<int32_t, int32_t>> seen;
  for (const Size& b : buckets) {
    CHECK(b.width % 64 == 0);
    CHECK(b.height % 64 == 0);
    CHECK(int64_t{b.width} * b.height <= 1024 * 1024);
    CHECK(std::max(b.width, b.height) <= 2 * std::min(b.width, b.height));
    CHECK(seen.insert({b.width, b.height}).second);
  }
  for (const Size& b : buckets) CHECK(seen.contains({b.height, b.width}));
  CHECK(derive_buckets({.pixels = 100, .multiple = 64}).empty());
}

TEST_CASE("buckets geometry: pictures decode row by row to the same bytes as whole") {
  Image in(130, 61);
  for (size_t i = 0; i < in.rgb.size(); ++i) in.rgb[i] = static_cast<uint8_t>(i * i / 7);
  Preparation p{.geometry = Geometry::kBuckets};
  p.buckets = {{32, 32}, {48, 24}, {24, 48}, {64, 16}};
  const std::string png = encode_png(in);
  const auto streamed = decode_prepared(as_bytes(png), p);
  REQUIRE(streamed);
  CHECK(streamed->image == prepare_tiles(in, p));
  CHECK(streamed->image.width == 48);
  CHECK(streamed->image.height == 24);
  CHECK(shape_of({130, 61}, p).tokens == 0);
}
