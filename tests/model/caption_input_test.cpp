#include "lib/model/caption_input.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/model/eager.h"
#include "tests/model/tiny_diffusion.h"
#include "tests/model/tiny_llava.h"

using namespace mm;
using namespace mm::model;
using namespace mm::model::test;

namespace {

at::Tensor prediction(const Model& model, const ParamView& params, Batch batch) {
  batch.want_logits = true;
  return eager_forward(model, params, batch)[model.logits_slot];
}

}  // namespace

TEST_CASE("C55: stored captions: neither padding's length nor its values are seen") {
  const DiffusionConfig config = [] {
    DiffusionConfig c = tiny_pixart();
    c.caption_tokens = 120;
    c.null_caption = false;
    return c;
  }();
  const Model model = build_diffusion(config, tiny_objective(config));
  const SimpleParams params = lively_params(model, 1, at::kFloat);
  TinyPictures pictures{.ids = {0, 1, 2, 4}};
  const at::Tensor want = prediction(model, params, tiny_pictures(config, pictures, at::kFloat));
  for (const int64_t padding : {15, 115}) {
    pictures.caption_padding = padding;
    const at::Tensor got = prediction(model, params, tiny_pictures(config, pictures, at::kFloat));
    CHECK(relative(got, want) < 1e-5);
  }
}

TEST_CASE("C55: a caption alone and among longer ones says the same, encoded or stored") {
  for (const DiffusionConfig& config : {tiny_pixart(), tiny_texted()}) {
    const Model model = build_diffusion(config, tiny_objective(config));
    const SimpleParams params = lively_params(model, 1);
    const at::Tensor all =
        prediction(model, params, tiny_pictures(config, {.ids = {0, 1, 2, 3, 4}}));
    for (int64_t id = 0; id < 5; ++id) {
      CAPTURE(id);
      const at::Tensor alone = prediction(model, params, tiny_pictures(config, {.ids = {id}}));
      CHECK(relative(alone[0], all[id]) < 1e-12);
    }
  }
}

TEST_CASE(
    "C55: SD3's form trains without a mask, so padding is seen unless it is asked to be kept out") {
  DiffusionConfig config = tiny_sd3();
  const auto changed = [&] {
    const Model model = build_diffusion(config, tiny_objective(config));
    const SimpleParams params = lively_params(model, 1);
    const at::Tensor a = prediction(model, params, tiny_pictures(config, {.ids = {0, 1}})),
                     b = prediction(model, params,
                                    tiny_pictures(config, {.ids = {0, 1}, .caption_padding = 9}));
    return relative(b, a);
  };
  CHECK(changed() > 1e-3);
  config.mask_captions = true;
  CHECK(changed() < 1e-12);
}

TEST_CASE("dropped captions are the learned one, or zero; the caption itself is not seen") {
  DiffusionConfig config = tiny_pixart();
  Batch batch = tiny_pictures(config, {.ids = {0, 4}});  // id 4 is dropped
  const at::Tensor null = at::full({5, 10}, 7.0, at::kDouble);
  const at::Tensor captions = stored_captions(config, batch, null);
  CHECK(at::equal(captions[1], null));
  CHECK(captions[0].narrow(0, 1, 4).abs().max().item<double>() == 0);
  const CaptionRows rows = caption_rows(config, batch);
  CHECK(rows.length == 5);
  CHECK(rows.keep[1].all().item<bool>());
  CHECK(rows.keep[0].sum().item<int64_t>() == 1);
  config.null_caption = false;
  CHECK(stored_captions(config, batch, {})[1].abs().max().item<double>() == 0);
  CHECK(caption_rows(config, batch).keep[1].sum().item<int64_t>() == 1);
}

TEST_CASE("an empty caption has one row; masks of the caller are left as they are") {
  const DiffusionConfig config = tiny_pixart();
  const Batch batch = tiny_pictures(config, {.ids = {3}});  // no token
  const CaptionRows rows = caption_rows(config, batch);
  CHECK(rows.length == 1);
  CHECK(rows.keep.all().item<bool>());
  CHECK(!batch.diffusion->caption_mask.any().item<bool>());
  CHECK(stored_captions(config, batch, {}).abs().max().item<double>() == 0);
}

TEST_CASE("a text encoder reads no more tokens than it has positions, none of dropped captions") {
  const DiffusionConfig config = tiny_texted();
  Batch batch;
  batch.tokens = at::arange(12, at::kLong);
  batch.cu_seqlens = {0, 8, 8, 12};
  CaptionTokens tokens = caption_tokens(config, batch);
  CHECK(tokens.borders == std::vector<int64_t>{0, 5, 5, 9});
  CHECK(tokens.length == 5);
  CHECK(at::equal(tokens.rows, at::tensor({0, 1, 2, 3, 4, 8, 9, 10, 11}, at::kLong)));
  CHECK(at::equal(tokens.places, at::tensor({0, 1, 2, 3, 4, 10, 11, 12, 13}, at::kLong)));
  CHECK(at::equal(tokens.null_places, at::tensor({5}, at::kLong)));
  auto in = std::make_shared<DiffusionInput>();
  in->caption_dropped = at::tensor({1, 0, 0}, at::kInt).to(at::kBool);
  batch.diffusion = in;
  tokens = caption_tokens(config, batch);
  CHECK(tokens.borders == std::vector<int64_t>{0, 0, 0, 4});
  CHECK(tokens.length == 4);
  in->caption_dropped = at::zeros({2}, at::kBool);
  CHECK_THROWS_AS(caption_tokens(config, batch), InternalError);
  CHECK(caption_tokens(config, Batch()).borders == std::vector<int64_t>{0});
}

TEST_CASE("captions of another width are refused") {
  DiffusionConfig config = tiny_pixart();
  const Batch batch = tiny_pictures(config, {.ids = {0}});
  config.caption_width = 11;
  CHECK_THROWS_WITH_AS(stored_captions(config, batch, {}), doctest::Contains("11"), InternalError);
}
