#include "lib/image/geometry.h"

#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "tests/image/fixtures.h"

using namespace mm;
using namespace mm::image;

TEST_CASE("shortest_edge_size: the short side becomes the edge, the long one is cut down") {
  CHECK(shortest_edge_size({451, 300}, 336) == Size{505, 336});
  CHECK(shortest_edge_size({131, 400}, 336) == Size{336, 1025});
  CHECK(shortest_edge_size({7, 7}, 5) == Size{5, 5});
  CHECK(shortest_edge_size({1, 65535}, 336) == Size{336, 336 * 65535});
}

TEST_CASE("centre_crop: offsets are rounded down") {
  CHECK(centre_crop({505, 336}, {336, 336}) == Box{84, 0, 336, 336});
  CHECK(centre_crop({5, 5}, {5, 5}) == Box{0, 0, 5, 5});
  CHECK_THROWS_AS(centre_crop({4, 4}, {5, 4}), InternalError);
}

TEST_CASE("letterbox: the canvas is filled for every odd and even gap") {
  const Image in = mm::image::testing::noise_picture(19, 11, 1);
  for (int32_t w = 1; w < 24; ++w) {
    for (int32_t h = 1; h < 24; h += 3) {
      const Placement p = letterbox_placement({19, 11}, {w, h});
      CHECK((p.inner.width == w || p.inner.height == h));
      CHECK(
          (p.inner.width >= 1 && p.inner.width <= w && p.inner.height >= 1 && p.inner.height <= h));
      const int32_t right = w - p.inner.left - p.inner.width,
                    below = h - p.inner.top - p.inner.height;
      CHECK((right - p.inner.left == 0 || right - p.inner.left == 1));
      CHECK((below - p.inner.top == 0 || below - p.inner.top == 1));
      const Image out = letterbox(in, {w, h}, Filter::kBicubic, {1, 2, 3});
      CHECK((out.width == w && out.height == h));
    }
  }
}

TEST_CASE("prepare: every geometry gives a square of the side asked for") {
  for (const auto& [w, h] : {std::pair{1, 1}, {300, 2}, {2, 300}, {64, 64}}) {
    const Image in = mm::image::testing::noise_picture(w, h, 4);
    for (const Geometry geometry : {Geometry::kCrop, Geometry::kPad, Geometry::kSquash}) {
      const Image out = prepare(in, {.geometry = geometry, .side = 28});
      CHECK((out.width == 28 && out.height == 28));
    }
  }
}

TEST_CASE("names of geometries, filters and options are read, others are not") {
  CHECK(geometry_from_name("pad") == Geometry::kPad);
  CHECK(geometry_from_name("crop") == Geometry::kCrop);
  CHECK(geometry_from_name("squash") == Geometry::kSquash);
  CHECK_FALSE(geometry_from_name("stretch"));
  CHECK(filter_from_name("lanczos") == Filter::kLanczos);
  CHECK_FALSE(filter_from_name("hamming"));
}
