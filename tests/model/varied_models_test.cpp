#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/model/flops.h"
#include "lib/model/generate.h"
#include "lib/model/tile_features.h"
#include "tests/model/tiny_varied.h"

using namespace mm::model;
using namespace mm::model::test;

namespace {

struct Case {
  LlavaConfig config;
  std::vector<VariedSample> samples;
};

Case tiled_case(const LlavaConfig& config) {
  return {config,
          {{{tiled_shape(config, 5, 11)}, {1, 12, 13, 14}},
           {{}, {1, 22, 23}},
           {{tiled_shape(config, 9, 4), tiled_shape(config, 16, 16)}, {3, 4}}}};
}

Case sized_case() {
  const LlavaConfig config = tiny_qwen_config();
  return {config,
          {{{sized_picture(config, 3, 3)}, {1, 12, 13, 14}},
           {{}, {1, 22, 23}},
           {{sized_picture(config, 1, 2), sized_picture(config, 2, 4)}, {3, 4}}}};
}

std::vector<Case> all_cases() {
  return {tiled_case(tiny_next_config()), tiled_case(tiny_onevision_config()), sized_case()};
}

SlotValues forward(const Case& c, const std::vector<VariedSample>& samples) {
  const Model model = build_llava(c.config);
  Batch batch = varied_batch(c.config, samples);
  batch.want_logits = true;
  return eager_forward(model, lively_params(model, 7), batch);
}

SimpleParams train(const Case& c, const std::vector<std::vector<VariedSample>>& micro_batches) {
  const Model model = build_llava(c.config);
  SimpleParams params = lively_params(model, 7);
  for (const auto& samples : micro_batches)
    eager_train({model, params, params.trainable(), params, 0.25}, varied_batch(c.config, samples));
  return params;
}

}  // namespace

TEST_CASE(
    "tiles and pictures of any size: a pack gives the logits and the loss of each sample alone") {
  for (const Case& c : all_cases()) {
    CAPTURE(family_name(c.config.family));
    const Model model = build_llava(c.config);
    const SlotValues together = forward(c, c.samples);
    std::vector<at::Tensor> apart;
    double loss = 0;
    for (const VariedSample& sample : c.samples) {
      const SlotValues alone = forward(c, {sample});
      apart.push_back(alone[model.logits_slot]);
      loss += alone[model.loss_slot].item<double>();
    }
    CHECK(relative(together[model.logits_slot], at::cat(apart)) < 1e-12);
    CHECK(together[model.loss_slot].item<double>() == doctest::Approx(loss).epsilon(1e-12));
  }
}

TEST_CASE(
    "tiles and pictures of any size: gradients of micro-batches add up to those of one pack") {
  for (const Case& c : all_cases()) {
    const Model model = build_llava(c.config);
    const SimpleParams whole = train(c, {c.samples}),
                       parts = train(c, {{c.samples[0]}, {}, {c.samples[1], c.samples[2]}});
    const std::vector<bool> used = params_in_use(model);
    for (size_t i = 0; i < used.size(); ++i) {
      const auto id = static_cast<ParamId>(i);
      CAPTURE(family_name(c.config.family));
      CAPTURE(model.params[i].name);
      const at::Tensor want = grad_or_zero(model, whole, id);
      CHECK((want.norm().item<double>() > 0) == used[i]);
      CHECK((grad_or_zero(model, parts, id) - want).norm().item<double>() <=
            1e-11 * (1 + want.norm().item<double>()));
    }
  }
}

TEST_CASE("tiles and pictures of any size: gradients agree with finite differences of the loss") {
  for (const Case& c : all_cases()) {
    const Model model = build_llava(c.config);
    const Batch batch = varied_batch(c.config, c.samples);
    SimpleParams params = lively_params(model, 7);
    eager_train({model, params, params.trainable(), params, 1.0}, batch);
    for (const ParamSpec& spec : model.params) {
      const bool wanted =
          spec.name == "image_newline" || spec.name.ends_with("patch_embed.proj.weight") ||
          spec.name.ends_with("merger.mlp.0.weight") ||
          spec.name.ends_with("blocks.0.attn.qkv.bias") || spec.name.ends_with("linear_1.bias");
      if (!wanted) continue;
      const ParamId id = find_param(model, spec.name);
      CAPTURE(spec.name);
      SimpleParams moved = lively_params(model, 7);
      const at::Tensor direction = params.grad(id) / params.grad(id).norm();
      const auto loss_at = [&](double step) {
        const at::NoGradGuard no_grad;
        moved.get(id).add_(direction, step);
        const double loss = eager_forward(model, moved, batch)[model.loss_slot].item<double>();
        moved.get(id).sub_(direction, step);
        return loss;
      };
      const double slope = (loss_at(1e-5) - loss_at(-1e-5)) / 2e-5;
      CHECK(slope == doctest::Approx(params.grad(id).norm().item<double>()).epsilon(1e-6));
    }
  }
}

TEST_CASE("tiles and pictures of any size: an empty micro-batch has a loss of zero") {
  for (const Case& c : all_cases()) {
    const Model model = build_llava(c.config);
    const SlotValues none = forward(c, {});
    CHECK(none[model.loss_slot].item<double>() == 0);
    CHECK(none[model.logits_slot].sizes() == at::IntArrayRef({0, 50}));
  }
}

TEST_CASE("greedy tokens with tiles and pictures of any size: cached steps equal whole passes") {
  for (const Case& c : all_cases()) {
    CAPTURE(family_name(c.config.family));
    const Model model = build_llava(c.config);
    const SimpleParams params = lively_params(model, 7);
    const auto cached = generate_greedy(model, params, varied_batch(c.config, c.samples),
                                        {.max_new_tokens = 4, .banned_tokens = {49}});
    std::vector<VariedSample> grown = c.samples;
    for (size_t step = 0; step < 4; ++step) {
      Batch batch = varied_batch(c.config, grown);
      batch.want_logits = true;
      const at::Tensor logits = eager_forward(model, params, batch)[model.logits_slot];
      for (size_t i = 0; i < grown.size(); ++i) {
        at::Tensor row = logits[batch.cu_seqlens[i + 1] - 1].clone();
        row[49] = -1e30;
        grown[i].text.push_back(row.argmax().item<int64_t>());
        CHECK(cached[i][step] == grown[i].text.back());
      }
    }
  }
}

TEST_CASE("Qwen2.5-VL: a layer of windows does not see other windows, one of pictures does") {
  const LlavaConfig config = tiny_qwen_config();
  const Model model = build_llava(config);
  const SimpleParams params = lively_params(model, 7);
  Batch batch = varied_batch(config, {{{sized_picture(config, 2, 4)}, {1, 2}}});
  const SlotValues before = eager_forward(model, params, batch);
  batch.pixel_values = batch.pixel_values.clone();
  batch.pixel_values[31] += 1;  // the last patch, of the second window
  const SlotValues after = eager_forward(model, params, batch);
  const auto moved = [&](const char* slot) {
    const Slot s = find_slot(model, slot);
    return (before[s] - after[s]).abs().sum(1).gt(0).narrow(0, 0, 16).sum().item<int64_t>();
  };
  CHECK(moved("vision.1") == 0);
  CHECK(moved("vision.2") == 16);
}

TEST_CASE("costs count tiles, patches and windows") {
  const Case next = tiled_case(tiny_next_config());
  const Model model = build_llava(next.config);
  const std::vector<bool> none(model.params.size(), false);
  const Sizes sizes = varied_batch(next.config, next.samples).sizes;
  Sizes half = sizes;
  half.images = sizes.images / 2;
  CHECK(sizes.images == 3 + 3 + 5);
  CHECK(model_flops(model, sizes, none).total() > model_flops(model, half, none).total());

  const Case qwen = sized_case();
  const Model tower = build_llava(qwen.config);
  Sizes only;
  only.patch_rows = 36, only.picture_pairs = 36 * 36, only.window_pairs = 500;
  const double v = 16, f = 20, layer = 36 * 2 * (4 * v * v + 3 * v * f),
               merger = 9 * 2 * (64 * 64 + 64 * 24), embed = 36 * 2 * 48 * v;
  CHECK(model_flops(tower, only, std::vector<bool>(tower.params.size(), false)).total() ==
        doctest::Approx(embed + 2 * layer + 4 * v * (500 + 36 * 36) + merger));
}
