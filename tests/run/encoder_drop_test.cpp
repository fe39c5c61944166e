// Text encoders' shares of captions left out by themselves.
#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/base/error.h"
#include "lib/model/diffusion_input.h"
#include "lib/run/diffusion_batch.h"
#include "lib/run/diffusion_setup.h"
#include "lib/run/encode_dataset.h"
#include "tests/run/online_runs.h"

using namespace mm::run;
using namespace mm::run::test;
using mm::data::test::TempDir;
namespace fs = std::filesystem;

TEST_CASE("encoder drop: each encoder's share alone is zeros; a caption without any is left out") {
  TempDir dir;
  const std::vector<fs::path> text = three_encoders(dir);
  const auto encoders = load_encoders({.text = text, .text_padding = 9}, toy());
  const CaptionShape& shape = encoders->text->shape();
  const std::vector<CaptionShare> expected{
      {.rows = 12, .width = 8, .pooled_width = 8},
      {.rows = 12, .column = 8, .width = 12, .pooled = 8, .pooled_width = 10},
      {.row = 12, .rows = 9, .width = 24}};
  CHECK((shape.shares == expected));
  mm::model::DiffusionConfig config{.family = mm::model::DiffusionFamily::kSd3};
  config.caption_tokens = 21;
  config.mask_captions = false;
  const mm::model::Objective objective{.prediction = mm::model::Prediction::kVelocity};
  mm::data::MicroBatch mb;
  mb.tokens = {1, 10, 11, 1, 12};
  mb.cu_seqlens = {0, 3, 5};
  mb.images = mb.target_count = 2;
  mb.height = mb.width = 4;
  mb.pixels.assign(2 * 4 * 4 * 3, 128);
  mb.sample_ids = {7, 11};
  const auto batch = [&](const std::vector<double>& chances) {
    std::vector<EncoderDrop> drops;
    for (size_t i = 0; i < chances.size(); ++i) drops.push_back({shape.shares[i], chances[i]});
    return to_diffusion_batch(mb, {.config = config,
                                   .objective = objective,
                                   .norm = {.mean = {0.5F, 0.5F, 0.5F}, .std = {0.5F, 0.5F, 0.5F}},
                                   .draws = {.seed = 3, .encoder_drop = drops},
                                   .online = encoders.get()})
        .diffusion;
  };
  const auto whole = batch({}), all = batch({1, 1, 1});
  CHECK(all->captions.abs().max().item<float>() == 0);
  CHECK(all->pooled.abs().max().item<float>() == 0);
  CHECK(all->caption_dropped.all().item<bool>());
  for (size_t k = 0; k < 3; ++k) {
    std::vector<double> only(3, 0);
    only[k] = 1;
    const auto one = batch(only);
    at::Tensor captions = whole->captions.clone(), pooled = whole->pooled.clone();
    const CaptionShare& share = shape.shares[k];
    captions.narrow(1, share.row, share.rows).narrow(2, share.column, share.width).zero_();
    pooled.narrow(1, share.pooled, share.pooled_width).zero_();
    CHECK(one->captions.equal(captions));
    CHECK(one->pooled.equal(pooled));
    CHECK(!one->caption_dropped.any().item<bool>());
    CHECK(!captions.equal(whole->captions));
  }
  // A pure function of seed, epoch, sample and encoder.
  const std::vector<double> half(3, 0.5);
  const at::Tensor drawn = batch(half)->captions;
  std::swap(mb.sample_ids[0], mb.sample_ids[1]);
  mb.tokens = {1, 12, 1, 10, 11};
  mb.cu_seqlens = {0, 2, 5};
  CHECK(batch(half)->captions[0].equal(drawn[1]));
  CHECK(batch(half)->captions[1].equal(drawn[0]));

  const StoredInputs three{.text_width = 24, .text_shares = shape.shares};
  CHECK(encoder_drops({}, three).empty());
  CHECK(encoder_drops({.encoder_drop = {0.464}}, three).at(2).chance == 0.464);
  CHECK(encoder_drops({.encoder_drop = {0.1, 0.2, 0.3}}, three).at(1).chance == 0.2);
  CHECK_THROWS_WITH_AS(encoder_drops({.encoder_drop = {0.1, 0.2}}, three),
                       doctest::Contains("2 chances for 3 text encoders"), mm::UsageError);
  CHECK_THROWS_WITH_AS(encoder_drops({.encoder_drop = {0.1}}, {.text_width = 24}),
                       doctest::Contains("do not say which numbers are of which"), mm::UsageError);
  CHECK_THROWS_WITH_AS(encoder_drops({.encoder_drop = {0.1}}, {}),
                       doctest::Contains("label_drop leaves out captions"), mm::UsageError);
}

TEST_CASE("encoder drop, laws 1 and 2: any ranks, stopped and resumed, stored and on the way") {
  TempDir dir;
  const std::vector<fs::path> text = three_encoders(dir);
  const std::vector<std::string> keys =
      joined(online_keys(text), {"model.family=sd3", "model.text_padding=9",
                                 "diffusion.label_drop=0", "diffusion.encoder_drop=[0.464]"});
  const Recipe recipe = tiny_diffusion_recipe(dir.path(), keys);
  const Outcome one = run_threads(recipe, dir / "one", 1);
  for (const int ranks : {2, 3, 4}) {
    const Outcome many = run_threads(recipe, dir / std::to_string(ranks), ranks);
    CHECK_MESSAGE(weight_difference(one, many) < 1e-9, ranks);
    check_same_losses(many, one, 1e-10);
  }
  CHECK(run_threads(recipe, dir / "stopped", 1, {.stop_after = 3}).code ==
        mm::ExitCode::kSavedRunAgain);
  CHECK(same_bits(run_threads(recipe, dir / "stopped", 1), one));
  const Outcome kept = run_with(dir, "kept", joined(keys, {"diffusion.encoder_drop=[]"}));
  CHECK(kept.records.back().loss != one.records.back().loss);
  // Stored alone, without the models: the set says which numbers are of which encoder.
  encode_dataset({.dataset = dir / "pictures",
                  .encoders = {.vae = tiny_vae(), .text = text, .text_padding = 9},
                  .output = dir / "stored"});
  const std::vector<std::string> stored{"stage.0.encoded=" + (dir / "stored").string(),
                                        "model.transformer.patch=1",
                                        "stage.0.train=[\"transformer\"]",
                                        "stage.0.lr={ transformer = 3e-3 }",
                                        "model.family=sd3",
                                        "diffusion.label_drop=0",
                                        "diffusion.encoder_drop=[0.464]"};
  check_same_losses(run_with(dir, "stored-run", stored), one, 1e-6);
  CHECK_THROWS_WITH_AS(run_with(dir, "one", joined(keys, {"diffusion.encoder_drop=[0.5]"})),
                       doctest::Contains("diffusion.encoder_drop"), mm::Error);
}
