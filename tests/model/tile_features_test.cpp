#include "lib/model/tile_features.h"

#include "lib/base/error.h"
#include "tests/model/operation_check.h"
#include "tests/model/tiny_varied.h"

using namespace mm::model;
using namespace mm::model::test;

namespace {

// As the definition says it: tiles put on their grid as one plane, padding cut off, the plane
// scaled by weights of the nearest two rows and columns, a newline behind each line.
at::Tensor scaled_plane(const at::Tensor& plane, int64_t height, int64_t width) {
  std::vector<at::Tensor> rows;
  const auto taps = [](int64_t i, int64_t out, int64_t in) {
    const double source = std::max(
        0.0,
        (static_cast<double>(i) + 0.5) * static_cast<double>(in) / static_cast<double>(out) - 0.5);
    const auto low = static_cast<int64_t>(source);
    return std::tuple{low, std::min(low + 1, in - 1), source - static_cast<double>(low)};
  };
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      const auto [y0, y1, fy] = taps(y, height, plane.size(0));
      const auto [x0, x1, fx] = taps(x, width, plane.size(1));
      rows.push_back((plane[y0][x0] * (1 - fx) + plane[y0][x1] * fx) * (1 - fy) +
                     (plane[y1][x0] * (1 - fx) + plane[y1][x1] * fx) * fy);
    }
  }
  return at::stack(rows).view({height, width, plane.size(2)});
}

struct Expected {
  int64_t top, left, height, width;  ///< what stays of the grid, in patches
  int64_t scaled_height, scaled_width;
};

at::Tensor by_definition(const at::Tensor& features, const at::Tensor& newline,
                         const PictureShape& shape, int64_t side, const Expected& e) {
  std::vector<at::Tensor> rows;
  for (int64_t i = 0; i < side * side; ++i) rows.push_back(features[i]);
  std::vector<at::Tensor> lines;
  for (int64_t y = 0; y < shape.rows * side; ++y) {
    std::vector<at::Tensor> line;
    for (int64_t x = 0; x < shape.columns * side; ++x) {
      const int64_t tile = 1 + y / side * shape.columns + x / side;
      line.push_back(features[tile * side * side + y % side * side + x % side]);
    }
    lines.push_back(at::stack(line));
  }
  const at::Tensor kept = at::stack(lines).narrow(0, e.top, e.height).narrow(1, e.left, e.width);
  const at::Tensor plane = scaled_plane(kept, e.scaled_height, e.scaled_width);
  for (int64_t y = 0; y < e.scaled_height; ++y) {
    for (int64_t x = 0; x < e.scaled_width; ++x) rows.push_back(plane[y][x]);
    rows.push_back(newline);
  }
  return at::stack(rows);
}

void check_picture(const PictureShape& shape, const TileForm& form, const Expected& e) {
  const int64_t patches = form.side * form.side;
  check_same(
      [&](const auto& x) {
        return arrange_tiles(x[0], x[1], {&shape, 1}, form);
      },
      [&](const auto& x) { return by_definition(x[0], x[1], shape, form.side, e); },
      {draw({shape.tiles * patches, 3}), draw({3}, at::kDouble, 2)}, 1e-12);
}

}  // namespace

TEST_CASE("arrange_tiles: a wide picture loses the rows that pad it, each line ends in a newline") {
  // 40 x 130 pixels on 1 x 3 tiles of 4 x 4 patches: int(40 * 12 / 130) = 3, half of the gap is 0.
  check_picture({.tiles = 4,
                 .rows = 1,
                 .columns = 3,
                 .tokens = 16 + 4 * 13,
                 .original_height = 40,
                 .original_width = 130},
                {.side = 4}, {0, 0, 4, 12, 4, 12});
  // 20 x 130: int(1.8) = 1, half of the gap of 3 is 1: 2 rows stay.
  check_picture({.tiles = 4,
                 .rows = 1,
                 .columns = 3,
                 .tokens = 16 + 2 * 13,
                 .original_height = 20,
                 .original_width = 130},
                {.side = 4}, {1, 0, 2, 12, 2, 12});
}

TEST_CASE("arrange_tiles: a tall picture loses columns; an odd gap leaves one more of them") {
  // 90 x 33 pixels on 2 x 1 tiles of 4 x 4: int(33 * 8 / 90) = 2 of 4 columns.
  check_picture({.tiles = 3,
                 .rows = 2,
                 .columns = 1,
                 .tokens = 16 + 8 * 3,
                 .original_height = 90,
                 .original_width = 33},
                {.side = 4}, {0, 1, 8, 2, 8, 2});
  // 80 x 30: int(3.0) = 3, half of the gap of 1 is 0: all 4 stay.
  check_picture({.tiles = 3,
                 .rows = 2,
                 .columns = 1,
                 .tokens = 16 + 8 * 5,
                 .original_height = 80,
                 .original_width = 30},
                {.side = 4}, {0, 0, 8, 4, 8, 4});
}

TEST_CASE("arrange_tiles: OneVision scales features of many tiles down, and few not at all") {
  // 8 x 8 patches of a square: sqrt(64 / 32) = 1.41, int(8 / 1.41) = 5.
  check_picture({.tiles = 5,
                 .rows = 2,
                 .columns = 2,
                 .tokens = 16 + 5 * 6,
                 .original_height = 60,
                 .original_width = 60},
                {.side = 4, .max_tiles = 2}, {0, 0, 8, 8, 5, 5});
  check_picture({.tiles = 5,
                 .rows = 2,
                 .columns = 2,
                 .tokens = 16 + 8 * 9,
                 .original_height = 60,
                 .original_width = 60},
                {.side = 4, .max_tiles = 4}, {0, 0, 8, 8, 8, 8});
}

TEST_CASE("arrange_tiles: several pictures, one of one tile, one that no token stands for") {
  const at::Tensor features = draw({4 + 12 + 4 + 4, 3}), newline = draw({3}, at::kDouble, 2);
  const PictureShape single{.tokens = 5}, unused{.tokens = 0}, plain{.tokens = 4},
      two{.tiles = 3,
          .rows = 1,
          .columns = 2,
          .tokens = 4 + 2 * 5,
          .original_height = 8,
          .original_width = 16};
  const std::vector<PictureShape> pictures{single, two, unused, plain};
  const at::Tensor got = arrange_tiles(features, newline, pictures, {.side = 2});
  REQUIRE(got.size(0) == 5 + 14 + 4);
  CHECK(at::equal(got.narrow(0, 0, 4), features.narrow(0, 0, 4)));
  CHECK(at::equal(got[4], newline));
  CHECK(at::equal(got.narrow(0, 5, 14),
                  arrange_tiles(features.narrow(0, 4, 12), newline, {&two, 1}, {.side = 2})));
  CHECK(at::equal(got.narrow(0, 19, 4), features.narrow(0, 20, 4)));
  CHECK(arrange_tiles(features.narrow(0, 0, 0), newline, {}, {.side = 2}).size(0) == 0);
}

TEST_CASE("arrange_tiles: tokens and tiles that do not fit are our own fault") {
  const at::Tensor features = draw({12, 3}), newline = draw({3});
  PictureShape two{.tiles = 3,
                   .rows = 1,
                   .columns = 2,
                   .tokens = 4 + 2 * 5,
                   .original_height = 8,
                   .original_width = 16};
  const auto arranged = [&] { (void)arrange_tiles(features, newline, {&two, 1}, {.side = 2}); };
  CHECK_NOTHROW(arranged());
  two.tokens = 13;
  CHECK_THROWS_AS(arranged(), mm::InternalError);
  two.tokens = 14;
  two.columns = 3;
  CHECK_THROWS_AS(arranged(), mm::InternalError);
  two.tiles = 2;
  CHECK_THROWS_AS(arranged(), mm::InternalError);
}
