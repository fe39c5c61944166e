#include "lib/run/batch_tensors.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <numeric>

#include "lib/base/error.h"
#include "lib/data/collate.h"
#include "tests/data/tiny_dataset.h"

using namespace mm;
using namespace mm::run;

namespace {

model::LlavaConfig square_config(int64_t side, int64_t patch) {
  model::LlavaConfig config;
  config.vision.image_size = side;
  config.vision.patch_size = patch;
  return config;
}

/// A micro-batch of one sample: token, picture, token; pixels count up from 0.
data::MicroBatch one_picture(const data::PictureGrid& grid) {
  const data::PictureLayout layout{grid.height, grid.width, 0, data::test::kImageToken, true};
  data::Sample sample;
  sample.text.tokens.assign(static_cast<size_t>(grid.tokens) + 2, data::test::kImageToken);
  sample.text.tokens.front() = sample.text.tokens.back() = 1;
  sample.text.image_begin = {1};
  sample.grids = {grid};
  sample.pixels.resize(grid.pixel_bytes());
  std::iota(sample.pixels.begin(), sample.pixels.end(), uint8_t{0});
  data::MicroBatch mb = data::empty_micro_batch(layout);
  data::append_sample(sample, 0, layout, mb);
  return mb;
}

const PixelNorm kPlain = pixel_norm({0, 0, 0}, {1, 1, 1});

}  // namespace

TEST_CASE("to_batch: ids as they are, pixels by the formula, channels first") {
  const data::PictureLayout layout{data::test::kSide, data::test::kSide, data::test::kPatches,
                                   data::test::kImageToken};
  data::MicroBatch mb = data::empty_micro_batch(layout);
  data::append_sample(data::test::tiny_sample(3), 3, layout, mb);
  data::append_sample(data::test::tiny_sample(4), 4, layout, mb);
  mb.pixels[1] = 200;  // green of the first pixel
  const PixelNorm norm = pixel_norm({0.5, 0.25, 0}, {0.5, 0.5, 2});
  const model::Batch batch = to_batch(mb, square_config(data::test::kSide, 2), at::kDouble, norm);
  CHECK(batch.tokens.size(0) == static_cast<int64_t>(mb.tokens.size()));
  CHECK(batch.targets.sum().item<int64_t>() ==
        std::accumulate(mb.targets.begin(), mb.targets.end(), int64_t{0}));
  CHECK(batch.cu_seqlens.back() == batch.tokens.size(0));
  CHECK(batch.sizes.samples == 2);
  CHECK(batch.sizes.images == 1);
  CHECK(batch.sizes.patches == data::test::kPatches);
  CHECK(batch.pixel_values.sizes() ==
        at::IntArrayRef({1, 3, data::test::kSide, data::test::kSide}));
  CHECK(batch.pixel_values[0][1][0][0].item<double>() ==
        doctest::Approx((200.0 / 255 - 0.25) / 0.5).epsilon(1e-6));
  CHECK(batch.pixel_values[0][2][0][0].item<double>() ==
        doctest::Approx(3.0 / 255 / 2).epsilon(1e-6));
}

TEST_CASE("to_batch: an empty micro-batch gives zero-length tensors of the right rank") {
  const model::Batch batch = to_batch(data::empty_micro_batch({}), square_config(8, 4), at::kFloat);
  CHECK(batch.tokens.numel() == 0);
  CHECK(batch.pixel_values.sizes() == at::IntArrayRef({0, 3, 8, 8}));
  CHECK(batch.cu_seqlens == std::vector<int64_t>{0});
  CHECK(batch.sizes.samples == 0);
}

TEST_CASE("to_batch: tiles one by one, with the picture's grid and its size before resizing") {
  model::LlavaConfig config = square_config(4, 2);
  config.family = model::Family::kLlavaNext;
  const data::PictureGrid grid{.width = 4,
                               .height = 4,
                               .tiles = 3,
                               .rows = 1,
                               .columns = 2,
                               .tokens = 4 + 2 * 5,
                               .original_width = 30,
                               .original_height = 15};
  const model::Batch batch = to_batch(one_picture(grid), config, at::kFloat, kPlain);
  REQUIRE(batch.pictures.size() == 1);
  CHECK(batch.pictures[0].tiles == 3);
  CHECK(batch.pictures[0].columns == 2);
  CHECK(batch.pictures[0].tokens == 14);
  CHECK(batch.pictures[0].original_width == 30);
  CHECK(batch.pictures[0].original_height == 15);
  CHECK(batch.sizes.images == 3);
  CHECK(batch.sizes.patches == 4);
  REQUIRE(batch.pixel_values.sizes() == at::IntArrayRef({3, 3, 4, 4}));
  // Tile 2, green, row 1, column 3: byte (2 * 16 + 7) * 3 + 1.
  CHECK(batch.pixel_values[2][1][1][3].item<float>() == doctest::Approx(118.0 / 255));
  CHECK_FALSE(batch.axis_positions.defined());
  config.vision.image_size = 8;
  CHECK_THROWS_AS(to_batch(one_picture(grid), config, at::kFloat), InternalError);
}

TEST_CASE("to_batch: pictures of any size as rows of patches, with layout and positions") {
  model::LlavaConfig config;
  config.family = model::Family::kQwen25Vl;
  config.vision = {.kind = model::VisionKind::kQwen25,
                   .image_size = 0,
                   .patch_size = 2,
                   .merge = 2,
                   .window = 8};
  const data::PictureGrid grid{.width = 8, .height = 4, .tokens = 2};
  const model::Batch batch = to_batch(one_picture(grid), config, at::kFloat, kPlain);
  REQUIRE(batch.pixel_values.sizes() == at::IntArrayRef({8, 12}));
  CHECK(batch.sizes.images == 1);
  CHECK(batch.sizes.patch_rows == 8);
  CHECK(batch.sizes.picture_pairs == 64);
  REQUIRE(batch.patch_layout != nullptr);
  // Patch 5 is row 0, column 5 - 4 + 2 = 3 of the picture: pixel (0, 6), red first.
  CHECK(batch.pixel_values[5][0].item<float>() == doctest::Approx(6.0 * 3 / 255));
  CHECK(at::equal(batch.axis_positions[2], at::tensor({0, 1, 2, 3}, at::kLong)));
  CHECK(at::equal(batch.axis_positions[0], at::tensor({0, 1, 1, 3}, at::kLong)));
}

TEST_CASE("to_batch: a stand-in for a damaged picture leaves no pixels behind") {
  const data::PictureLayout layout{4, 4, 0, data::test::kImageToken, true};
  for (const auto family : {model::Family::kLlavaNext, model::Family::kQwen25Vl}) {
    model::LlavaConfig config = square_config(4, 2);
    config.family = family;
    config.vision.merge = 2;
    config.vision.window = 8;
    data::MicroBatch mb = data::empty_micro_batch(layout);
    data::append_sample(data::stand_in({.tokens = 5, .images = 2}, layout), 0, layout, mb);
    const model::Batch batch = to_batch(mb, config, at::kFloat, kPlain);
    CHECK(batch.pixel_values.size(0) == 0);
    CHECK(batch.pictures.empty());
    CHECK(batch.sizes.images == 0);
    CHECK(batch.tokens.size(0) == 5);
  }
}
