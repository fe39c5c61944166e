#include "lib/run/batch_tensors.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <numeric>

#include "lib/data/collate.h"
#include "tests/data/tiny_dataset.h"

using namespace mm;
using namespace mm::run;

TEST_CASE("to_batch: ids as they are, pixels by the formula, channels first") {
  const data::PictureLayout layout{data::test::kSide, data::test::kSide, data::test::kPatches,
                                   data::test::kImageToken};
  data::MicroBatch mb = data::empty_micro_batch(layout);
  data::append_sample(data::test::tiny_sample(3), 3, layout, mb);
  data::append_sample(data::test::tiny_sample(4), 4, layout, mb);
  mb.pixels[1] = 200;  // green of the first pixel
  const PixelNorm norm = pixel_norm({0.5, 0.25, 0}, {0.5, 0.5, 2});
  const model::Batch batch = to_batch(mb, data::test::kSide, at::kDouble, norm);
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
  const model::Batch batch = to_batch(data::empty_micro_batch({}), 8, at::kFloat);
  CHECK(batch.tokens.numel() == 0);
  CHECK(batch.pixel_values.sizes() == at::IntArrayRef({0, 3, 8, 8}));
  CHECK(batch.cu_seqlens == std::vector<int64_t>{0});
  CHECK(batch.sizes.samples == 0);
}
