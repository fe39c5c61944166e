#include "lib/model/adapter_dropout.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/model/lora.h"
#include "lib/model/tile_features.h"
#include "tests/model/tiny_varied.h"

using namespace mm::model;
using namespace mm::model::test;

namespace {

constexpr double kShare = 0.25;

Model adapted(const LlavaConfig& config, double dropout) {
  Model model = build_llava(config);
  add_lora(
      model,
      {.rank = 2,
       .alpha = 6,
       .dropout = dropout,
       .targets = {{Part::kVision, {"*"}}, {Part::kProjector, {"*"}}, {Part::kLanguage, {"*"}}}});
  return model;
}

/// Gives the batch the draws of these samples.
Batch keyed(Batch batch, const std::vector<uint64_t>& ids, uint64_t seed = 3, uint64_t epoch = 1) {
  batch.row_draws = std::make_shared<RowDraws>(row_draws(batch, ids, seed, epoch));
  return batch;
}

double loss_of(const Model& model, const SimpleParams& params, const Batch& batch) {
  return eager_forward(model, params, batch)[model.loss_slot].item<double>();
}

RowDraws of_text(const std::vector<SampleRows>& text, uint64_t seed = 3, uint64_t epoch = 1) {
  return {.seed = seed, .epoch = epoch, .text = text, .pictures = {}};
}

at::Tensor drawn(const RowDraws& draws, int64_t rows, const char* module = "a",
                 Part part = Part::kLanguage) {
  return dropped_input(at::ones({rows, 24}, at::kDouble), draws, {part, module, kShare});
}

const TinySample kOne{1, {3, 5, 7, 2}}, kText{0, {4, 4, 9}}, kTwo{2, {8, 1}};

}  // namespace

TEST_CASE("an element is 0 or divided by what is kept, and the mean stays") {
  const at::Tensor out =
      dropped_input(at::ones({400, 30}, at::kFloat), of_text({{1, 150}, {2, 250}}),
                    {Part::kLanguage, "layer", kShare});
  const at::Tensor zero = out.eq(0), kept = out.eq(static_cast<float>(1 / (1 - kShare)));
  CHECK(zero.logical_or(kept).all().item<bool>());
  // 12,000 draws: five deviations.
  CHECK(std::abs(out.mean().item<double>() - 1) < 0.027);
  // Columns and rows are alike.
  CHECK(zero.to(at::kDouble).mean(0).std().item<double>() < 0.03);
  CHECK(zero.to(at::kDouble).mean(1).std().item<double>() < 0.11);
}

TEST_CASE("share 0 gives the input itself, and empty inputs pass") {
  const at::Tensor x = at::ones({3, 4});
  CHECK(dropped_input(x, of_text({{1, 3}}), {Part::kLanguage, "a", 0}).is_same(x));
  CHECK(dropped_input(at::ones({0, 4}), of_text({}), {Part::kLanguage, "a", 0.5}).size(0) == 0);
}

TEST_CASE("a row's draw depends on its sample and place, the epoch, the seed and the module") {
  const at::Tensor together = drawn(of_text({{7, 5}, {9, 4}}), 9);
  CHECK(at::equal(together.narrow(0, 0, 5), drawn(of_text({{7, 5}}), 5)));
  CHECK(at::equal(together.narrow(0, 5, 4), drawn(of_text({{9, 4}}), 4)));
  // A run of rows that comes in two parts goes on counting.
  CHECK(at::equal(drawn(of_text({{7, 2}, {9, 4}, {7, 3}}), 9).narrow(0, 6, 3),
                  together.narrow(0, 2, 3)));
  CHECK_FALSE(at::equal(together, drawn(of_text({{7, 5}, {9, 4}}, 3, 2), 9)));
  CHECK_FALSE(at::equal(together, drawn(of_text({{7, 5}, {9, 4}}, 4), 9)));
  CHECK_FALSE(at::equal(together, drawn(of_text({{7, 5}, {9, 4}}), 9, "b")));
  CHECK_FALSE(at::equal(together.narrow(0, 0, 4), together.narrow(0, 5, 4)));
  // Shares are proportions: rows of a picture inside the tower, and merged ones behind it.
  RowDraws pictures{.seed = 3, .epoch = 1, .text = {}, .pictures = {{7, 64}, {9, 128}}};
  CHECK(at::equal(drawn(pictures, 12, "a", Part::kVision).narrow(0, 4, 8),
                  drawn(of_text({{9, 8}}), 8)));
  CHECK(at::equal(drawn(pictures, 3, "a", Part::kProjector).narrow(0, 1, 2),
                  drawn(of_text({{9, 2}}), 2)));
  CHECK_THROWS(drawn(pictures, 4, "a", Part::kVision));
}

TEST_CASE("without dropout, without draws and with frozen adapters a model is as before") {
  const LlavaConfig config = tiny_config();
  const Model plain = adapted(config, 0), model = adapted(config, kShare);
  const SimpleParams params = lively_params(model, 11);
  const Batch batch = tiny_batch(config, {kOne, kText, kTwo});
  const double expected = loss_of(plain, params, batch);
  CHECK(loss_of(plain, params, keyed(batch, {1, 2, 3})) == expected);
  CHECK(loss_of(model, params, batch) == expected);
  CHECK(loss_of(model, params, keyed(batch, {1, 2, 3})) != expected);
  std::vector<at::Tensor> values;
  for (size_t i = 0; i < model.params.size(); ++i)
    values.push_back(params.get(static_cast<ParamId>(i)).detach());
  const SimpleParams frozen(model, values, std::vector<bool>(values.size(), false));
  CHECK(loss_of(model, frozen, keyed(batch, {1, 2, 3})) == expected);
}

TEST_CASE("law 1: a sample's loss is the same alone and in any pack") {
  const LlavaConfig config = tiny_config();
  const Model model = adapted(config, kShare);
  const SimpleParams params = lively_params(model, 11);
  const auto loss = [&](const std::vector<TinySample>& samples, const std::vector<uint64_t>& ids) {
    return loss_of(model, params, keyed(tiny_batch(config, samples), ids));
  };
  const double alone = loss({kOne}, {41}) + loss({kText}, {5}) + loss({kTwo}, {17});
  CHECK(loss({kOne, kText, kTwo}, {41, 5, 17}) == doctest::Approx(alone).epsilon(1e-12));
  CHECK(loss({kTwo, kOne, kText}, {17, 41, 5}) == doctest::Approx(alone).epsilon(1e-12));
  CHECK(std::abs(loss({kOne, kText, kTwo}, {41, 5, 18}) - alone) > 1e-6);
}

TEST_CASE("law 1 with tiles and with pictures of any size") {
  for (const LlavaConfig& config :
       {tiny_next_config(), tiny_onevision_config(), tiny_qwen_config()}) {
    CAPTURE(family_name(config.family));
    const Model model = adapted(config, kShare);
    const SimpleParams params = lively_params(model, 11);
    const auto picture = [&](int64_t height, int64_t width) {
      return config.has_tiles() ? tiled_shape(config, 8 * height, 8 * width)
                                : sized_picture(config, height, width);
    };
    const VariedSample one{{picture(1, 2)}, {3, 5, 7, 2}}, none{{}, {4, 4, 9}},
        two{{picture(2, 2), picture(3, 1)}, {8, 1}};
    const auto loss = [&](const std::vector<VariedSample>& samples,
                          const std::vector<uint64_t>& ids) {
      return loss_of(model, params, keyed(varied_batch(config, samples, at::kDouble), ids));
    };
    const double alone = loss({one}, {41}) + loss({none}, {5}) + loss({two}, {17});
    CHECK(loss({two, one, none}, {17, 41, 5}) == doctest::Approx(alone).epsilon(1e-12));
    CHECK(std::abs(loss({two, one, none}, {18, 41, 5}) - alone) > 1e-9);
  }
}

TEST_CASE("gradients are those of differences of the loss, in double, with the draws held") {
  const LlavaConfig config = tiny_config();
  const Model model = adapted(config, kShare);
  SimpleParams params = lively_params(model, 11);
  const Batch batch = keyed(tiny_batch(config, {kOne, kText, kTwo}), {41, 5, 17});
  eager_train({model, params, adapter_params(model), params}, batch);
  for (size_t i = 0; i < model.adapters.size(); i += 3) {
    for (const ParamId id : {model.adapters[i].a, model.adapters[i].b}) {
      CAPTURE(model.params[id].name);
      at::NoGradGuard guard;
      const at::Tensor element = params.get(id).view({-1})[3];
      const double at = element.item<double>(), step = 1e-5;
      const auto moved = [&](double to) {
        element.fill_(to);
        return loss_of(model, params, batch);
      };
      const double slope = (moved(at + step) - moved(at - step)) / (2 * step);
      element.fill_(at);
      CHECK(grad_or_zero(model, params, id).view({-1})[3].item<double>() ==
            doctest::Approx(slope).epsilon(1e-5));
    }
  }
}

TEST_CASE("what dropped inputs keep in memory is counted") {
  const LlavaConfig config = tiny_config();
  const Sizes sizes = tiny_batch(config, {kOne, kTwo}).sizes;
  const auto kept = [&](const Model& model) {
    double bytes = 0;
    for (const Block& block : model.blocks)
      for (const Step& step : block.steps)
        if (const auto* s = std::get_if<Segment>(&step); s != nullptr && s->cost)
          bytes += s->cost(sizes).saved_bytes;
    return bytes;
  };
  CHECK(kept(adapted(config, kShare)) > kept(adapted(config, 0)));
}
