#include "lib/image/resize.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/base/random.h"
#include "lib/image/geometry.h"
#include "lib/image/resize_kernels.h"
#include "lib/image/resize_weights.h"
#include "tests/image/fixtures.h"

using namespace mm;
using namespace mm::image;
using mm::image::testing::noise_picture;

namespace {

constexpr std::array kFilters = {Filter::kNearest, Filter::kBox, Filter::kBilinear,
                                 Filter::kBicubic, Filter::kLanczos};

}  // namespace

TEST_CASE("resize: the fast path equals the reference on random sizes with every filter") {
  const Philox random(7, "resize sizes");
  for (uint64_t i = 0; i < 60; ++i) {
    const auto side = [&](uint64_t k) {
      return static_cast<int32_t>(1 + random.below(4 * i + k, i % 4 == 0 ? 200 : 60));
    };
    const Image in = noise_picture(side(0), side(1), i);
    const Size out{side(2), side(3)};
    const Filter filter = kFilters[i % kFilters.size()];
    CAPTURE(i);
    CHECK(resize(in, out, filter) == resize_reference(in, out, filter));
  }
}

TEST_CASE("resize: sides of one pixel, unchanged sides and strong shrinking equal the reference") {
  struct Case {
    Size in, out;
  };
  for (const auto& [in, out] :
       {Case{{1, 1}, {7, 5}}, Case{{1, 90}, {3, 1}}, Case{{90, 1}, {1, 4}}, Case{{33, 17}, {33, 5}},
        Case{{33, 17}, {5, 17}}, Case{{33, 17}, {33, 17}}, Case{{3000, 3}, {2, 2}},
        Case{{3, 3000}, {2, 2}}}) {
    for (const Filter filter : kFilters) {
      const Image picture = noise_picture(in.width, in.height, 3);
      CHECK(resize(picture, out, filter) == resize_reference(picture, out, filter));
    }
  }
}

TEST_CASE("resize: a side above 8192 pixels equals the reference") {
  const Image picture = noise_picture(8209, 2, 5);
  CHECK(resize(picture, {31, 3}, Filter::kLanczos) ==
        resize_reference(picture, {31, 3}, Filter::kLanczos));
}

TEST_CASE("resize: an unchanged size gives the same picture") {
  const Image picture = noise_picture(19, 23, 1);
  for (const Filter filter : kFilters) CHECK(resize(picture, {19, 23}, filter) == picture);
}

TEST_CASE("resize: a flat picture stays flat") {
  Image picture(37, 41);
  for (uint8_t& byte : picture.rgb) byte = 201;
  for (const Filter filter : kFilters) {
    const Image out = resize(picture, {11, 77}, filter);
    CHECK(std::all_of(out.rgb.begin(), out.rgb.end(), [](uint8_t b) { return b == 201; }));
  }
}

TEST_CASE("resize_crop: equals resize followed by a crop") {
  const Image picture = noise_picture(61, 83, 9);
  for (const Filter filter : kFilters) {
    const Image whole = resize(picture, {40, 55}, filter);
    for (const Box& box : {Box{0, 0, 40, 55}, Box{3, 7, 20, 31}, Box{39, 54, 1, 1}}) {
      CHECK(resize_crop(picture, {40, 55}, box, filter) == crop(whole, box));
    }
  }
}

TEST_CASE("RowResizer: rows may come in any portions") {
  const Image picture = noise_picture(50, 47, 2);
  const Image want = resize(picture, {20, 21}, Filter::kBicubic);
  for (const int32_t portion : {1, 5, 16, 17, 47}) {
    RowResizer resizer({.in = {50, 47}, .out = {20, 21}, .crop = {0, 0, 20, 21}});
    for (int32_t y = 0; y < 47; y += portion)
      resizer.push(picture.row(y), std::min(portion, 47 - y));
    CHECK(resizer.finish() == want);
  }
}

TEST_CASE("RowResizer: too many rows, too few rows and impossible sizes are our bugs") {
  const Image picture(4, 4);
  RowResizer resizer({.in = {4, 4}, .out = {2, 2}, .crop = {0, 0, 2, 2}});
  CHECK_THROWS_AS(resizer.finish(), InternalError);
  CHECK_THROWS_AS(resizer.push(picture.row(0), 5), InternalError);
  CHECK_THROWS_AS(RowResizer({.in = {4, 4}, .out = {2, 2}, .crop = {1, 0, 2, 2}}), InternalError);
  CHECK_THROWS_AS(RowResizer({.in = {0, 4}, .out = {2, 2}, .crop = {0, 0, 2, 2}}), InternalError);
}

TEST_CASE("weights: every output's weights sum to 1 within their rounding, inside the picture") {
  for (const Filter filter :
       {Filter::kBox, Filter::kBilinear, Filter::kBicubic, Filter::kLanczos}) {
    const WeightTable table = make_weights(101, 37, filter, 0, 37);
    for (const Taps& taps : table.taps) {
      CHECK(taps.first >= 0);
      CHECK(taps.first + taps.count <= 101);
      int64_t sum = 0;
      for (int32_t k = 0; k < taps.count; ++k) sum += table.weights[taps.weights_at + k];
      CHECK(std::abs(sum - (1 << kWeightBits)) <= taps.count);
    }
  }
}

TEST_CASE("kernels: every set that this CPU runs gives the portable one's bytes") {
  const Philox random(11, "kernel sizes");
  REQUIRE(usable_kernels().back() == &kPortableKernels);
  for (const ResizeKernels* kernels : usable_kernels()) {
    CAPTURE(kernels->name);
    for (uint64_t i = 0; i < 60; ++i) {
      const auto side = [&](uint64_t k) {
        return static_cast<int32_t>(1 + random.below(4 * i + k, i % 5 == 0 ? 400 : 70));
      };
      const Image in = noise_picture(side(0), side(1), i);
      ResizePlan plan{.in = {in.width, in.height},
                      .out = {side(2), side(3)},
                      .filter = kFilters[i % kFilters.size()],
                      .order = i % 2 == 0 ? PassOrder::kPillow12 : PassOrder::kPillow13,
                      .kernels = kernels};
      plan.crop = {0, 0, plan.out.width, plan.out.height};
      RowResizer resizer(plan);
      resizer.push(in.rgb.data(), in.height);
      CAPTURE(i);
      CHECK(resizer.finish() == resize_reference(in, plan.out, plan.filter, plan.order));
    }
  }
}

TEST_CASE("kernels: black and white stripes at the ends of a weight's range") {
  Image stripes(257, 130);
  for (size_t i = 0; i < stripes.rgb.size(); ++i)
    stripes.rgb[i] = static_cast<uint8_t>(i / 3 % 2 * 255);
  for (const ResizeKernels* kernels : usable_kernels()) {
    for (const Filter filter : {Filter::kBicubic, Filter::kLanczos}) {
      for (const Size out : {Size{256, 129}, Size{300, 600}, Size{3, 2}}) {
        RowResizer resizer({.in = {257, 130},
                            .out = out,
                            .crop = {0, 0, out.width, out.height},
                            .filter = filter,
                            .kernels = kernels});
        resizer.push(stripes.rgb.data(), stripes.height);
        CHECK(resizer.finish() == resize_reference(stripes, out, filter));
      }
    }
  }
}

TEST_CASE("kernels: gathering reads no byte past a row's last pixel") {
  for (const ResizeKernels* kernels : usable_kernels()) {
    for (const size_t pixels : {1, 3, 4, 5, 6, 11, 32, 33}) {
      const std::vector<uint8_t> rows(16 * 3 * pixels, 7);  // the sanitizer watches its end
      std::vector<uint8_t> quads(kQuadBytes * ((pixels + 3) / 4));
      kernels->rows_to_quads(rows.data(), 3 * pixels, pixels, quads.data());
      CHECK(std::count(quads.begin(), quads.end(), 7) == static_cast<ptrdiff_t>(rows.size()));
    }
  }
}

TEST_CASE("kernels: lanes to rows transposes any width") {
  for (const size_t columns : {1, 15, 16, 17, 48, 100}) {
    std::vector<uint8_t> lanes(16 * columns), rows(16 * columns);
    for (size_t i = 0; i < lanes.size(); ++i) lanes[i] = static_cast<uint8_t>(i * 31 + i / 7);
    lanes_to_rows(lanes.data(), columns, rows.data(), columns);
    for (size_t c = 0; c < columns; ++c)
      for (size_t r = 0; r < 16; ++r) CHECK(rows[r * columns + c] == lanes[c * 16 + r]);
  }
}

TEST_CASE("resize: the order of passes follows the rule of either Pillow") {
  CHECK(goes_down_first({3, 301}, {2, 300}, PassOrder::kPillow12));
  CHECK_FALSE(goes_down_first({3, 300}, {2, 200}, PassOrder::kPillow12));
  CHECK_FALSE(goes_down_first({3, 301}, {2, 301}, PassOrder::kPillow12));
  CHECK(goes_down_first({64, 200}, {60, 20}, PassOrder::kPillow13));
  CHECK_FALSE(goes_down_first({64, 200}, {60, 20}, PassOrder::kPillow12));
  CHECK_FALSE(goes_down_first({100, 110}, {95, 100}, PassOrder::kPillow13));
  CHECK(goes_down_first({100, 111}, {95, 100}, PassOrder::kPillow13));
  CHECK(goes_down_first({10, 20}, {90, 19}, PassOrder::kPillow13));
}
