#include "lib/model/patch_layout.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "tests/model/tiny_varied.h"

using namespace mm::model;
using namespace mm::model::test;

namespace {

at::Tensor ids(std::vector<int64_t> values) { return at::tensor(values, at::kLong); }

}  // namespace

TEST_CASE("layout_patches: windows along the rows of a picture, smaller at its edges") {
  const LlavaConfig config = tiny_qwen_config();  // windows of 2 x 2 tokens
  const std::vector<PictureShape> pictures{sized_picture(config, 3, 3),
                                           sized_picture(config, 1, 2)};
  const PatchLayout layout = layout_patches(pictures, config.vision);
  // Tokens 0 1 2 / 3 4 5 / 6 7 8, then 9 10.
  CHECK(at::equal(layout.order, ids({0, 1, 3, 4, 2, 5, 6, 7, 8, 9, 10})));
  CHECK(at::equal(layout.order.index_select(0, layout.inverse), at::arange(11, at::kLong)));
  CHECK(layout.window_borders == std::vector<int64_t>{0, 16, 24, 32, 36, 44});
  CHECK(layout.picture_borders == std::vector<int64_t>{0, 36, 44});
  // The four patches of token 2 (first row, last column) stand fifth.
  CHECK(at::equal(layout.row.narrow(0, 16, 4), ids({0, 0, 1, 1})));
  CHECK(at::equal(layout.column.narrow(0, 16, 4), ids({4, 5, 4, 5})));
  Sizes sizes;
  count_patches(pictures, config.vision, sizes);
  CHECK(sizes.patch_rows == 44);
  CHECK(sizes.picture_pairs == 36 * 36 + 8 * 8);
  CHECK(sizes.window_pairs == 16 * 16 + 8 * 8 + 8 * 8 + 4 * 4 + 8 * 8);
}

TEST_CASE(
    "layout_patches: no picture is a layout of nothing, a picture that does not divide is "
    "refused") {
  const LlavaConfig config = tiny_qwen_config();
  const PatchLayout none = layout_patches({}, config.vision);
  CHECK(none.order.numel() == 0);
  CHECK(none.picture_borders == std::vector<int64_t>{0});
  PictureShape odd = sized_picture(config, 2, 2);
  odd.width += 4;
  CHECK_THROWS_AS(layout_patches(std::vector{odd}, config.vision), mm::InternalError);
}

TEST_CASE("cut_patches: neighbours of a token together, channels before rows before columns") {
  const at::Tensor pixels = at::arange(3 * 4 * 8, at::kLong).view({3, 4, 8});
  const at::Tensor patches = cut_patches(pixels, 2, 2);
  REQUIRE(patches.sizes() == at::IntArrayRef({8, 12}));
  CHECK(at::equal(patches[0], ids({0, 1, 8, 9, 32, 33, 40, 41, 64, 65, 72, 73})));
  CHECK(at::equal(patches.select(1, 0), ids({0, 2, 16, 18, 4, 6, 20, 22})));
}

TEST_CASE(
    "axis_positions: text counts in all three, a picture in rows and columns from where it "
    "stands") {
  const LlavaConfig config = tiny_qwen_config();
  const Batch batch = varied_batch(config, {{{sized_picture(config, 2, 3)}, {5, 6}},
                                            {{}, {7, 8}},
                                            {{sized_picture(config, 1, 1)}, {9}}});
  // Token 0, picture at 1: rows 1 2, columns 1 2 3; what follows begins at 1 + 3.
  CHECK(at::equal(batch.axis_positions[0], ids({0, 1, 1, 1, 1, 1, 1, 4, 5, 0, 1, 0, 1, 2})));
  CHECK(at::equal(batch.axis_positions[1], ids({0, 1, 1, 1, 2, 2, 2, 4, 5, 0, 1, 0, 1, 2})));
  CHECK(at::equal(batch.axis_positions[2], ids({0, 1, 2, 3, 1, 2, 3, 4, 5, 0, 1, 0, 1, 2})));
  CHECK(next_positions(batch) == std::vector<int64_t>{6, 2, 3});
}

TEST_CASE("next_positions: without pictures a continuation begins at the sample's length") {
  const Batch batch = tiny_batch(tiny_config(), {{1, {3, 4}}, {0, {5}}});
  CHECK(next_positions(batch) == std::vector<int64_t>{6, 1});
}

TEST_CASE("axis_positions: a picture that no token stands for is passed over") {
  const LlavaConfig config = tiny_qwen_config();
  PictureShape unused = sized_picture(config, 2, 2);
  unused.tokens = 0;
  const at::Tensor got =
      axis_positions(std::vector{unused, sized_picture(config, 1, 2)}, std::vector<int64_t>{1, 2},
                     std::vector<int64_t>{0, 4}, config.vision);
  CHECK(at::equal(got[2], ids({0, 1, 2, 3})));
  CHECK(at::equal(got[1], ids({0, 1, 1, 3})));
}
