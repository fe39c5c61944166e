#include "lib/model/diffusion.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cmath>

#include "lib/base/error.h"
#include "lib/model/flops.h"
#include "tests/model/tiny_diffusion.h"
#include "tests/model/tiny_llava.h"

using namespace mm;
using namespace mm::model;
using namespace mm::model::test;

namespace {

struct Trained {
  SlotValues slots;
  SimpleParams params;
};

Trained train(const Model& model, const Batch& batch, uint64_t seed = 1) {
  SimpleParams params = lively_params(model, seed);
  const std::vector<bool> trainable = params_in_use(model);
  SimpleParams chosen(
      model,
      [&] {
        std::vector<at::Tensor> values;
        for (size_t i = 0; i < model.params.size(); ++i)
          values.push_back(params.get(static_cast<ParamId>(i)).detach());
        return values;
      }(),
      trainable);
  SlotValues slots = eager_train({model, chosen, chosen.trainable(), chosen, 1.0}, batch);
  return {std::move(slots), std::move(chosen)};
}

double loss_of(const Model& model, const ParamView& params, const Batch& batch) {
  return eager_forward(model, params, batch)[model.loss_slot].item<double>();
}

}  // namespace

TEST_CASE("a fresh model predicts zero: its blocks begin as the identity") {
  for (const DiffusionConfig& config : tiny_families()) {
    const Model model = build_diffusion(config, tiny_objective(config));
    const SimpleParams params = SimpleParams::random(model, 1, at::kDouble);
    Batch batch = tiny_pictures(config, {.ids = {0, 1, 2}});
    batch.want_logits = true;
    const SlotValues slots = eager_forward(model, params, batch);
    CHECK(slots[model.logits_slot].abs().max().item<double>() == 0);
    CHECK(slots[model.logits_slot].sizes() == at::IntArrayRef({3, config.out_channels(), 4, 6}));
    if (config.family == DiffusionFamily::kPixart) continue;  // its tables are not zero
    CHECK(at::equal(slots[find_slot(model, "tokens.2")], slots[find_slot(model, "tokens.0")]));
  }
}

TEST_CASE("the loss is the weighted sum over pictures of losses that each picture has alone") {
  for (DiffusionConfig config : tiny_families()) {
    // Without a mask the padding of the others' captions is part of a picture's result.
    config.mask_captions = true;
    const Model model = build_diffusion(config, tiny_objective(config));
    const SimpleParams params = lively_params(model, 1);
    Batch batch = tiny_pictures(config, {.ids = {0, 1, 2, 3}});
    auto in = std::make_shared<DiffusionInput>(*batch.diffusion);
    in->weights = at::tensor({1., 0., .5, 2.}, at::kDouble);
    batch.diffusion = in;
    const SlotValues slots = eager_forward(model, params, batch);
    const at::Tensor each = slots[model.sample_losses_slot];
    CHECK(slots[model.loss_slot].item<double>() ==
          doctest::Approx((each * in->weights).sum().item<double>()).epsilon(1e-12));
    for (int64_t id = 0; id < 4; ++id) {
      CHECK(loss_of(model, params, tiny_pictures(config, {.ids = {id}})) ==
            doctest::Approx(each[id].item<double>()).epsilon(1e-11));
    }
    const at::Tensor parts =
        slots[find_slot(model, "square_losses")] + slots[find_slot(model, "variance_losses")];
    CHECK(at::allclose(parts, each));
  }
}

TEST_CASE("gradients are the slope of the loss") {
  for (const DiffusionConfig& config : tiny_families()) {
    CAPTURE(diffusion_family_name(config.family));
    Objective objective = tiny_objective(config);
    // The bound's gradient leaves out its mean, so it is no slope.
    objective.variational_bound = false;
    const Model model = build_diffusion(config, objective);
    const Batch batch = tiny_pictures(config, {.ids = {0, 4, 3}});
    const Trained trained = train(model, batch);
    for (size_t i = 0; i < model.params.size(); i += 3) {
      CAPTURE(model.params[i].name);
      const auto id = static_cast<ParamId>(i);
      if (!trained.params.trainable()[i]) continue;
      const at::Tensor direction =
          at::sin(at::arange(trained.params.get(id).numel(), at::kDouble) + 1)
              .view(model.params[i].shape);
      const auto at_step = [&](double step) {
        std::vector<at::Tensor> values;
        for (size_t p = 0; p < model.params.size(); ++p)
          values.push_back(trained.params.get(static_cast<ParamId>(p)).detach());
        values[i] = values[i] + step * direction;
        return loss_of(model, SimpleParams(model, values, std::vector<bool>(values.size())), batch);
      };
      const double slope = (at_step(1e-5) - at_step(-1e-5)) / 2e-5;
      const double want =
          (grad_or_zero(model, trained.params, id) * direction).sum().item<double>();
      CHECK(slope == doctest::Approx(want).epsilon(1e-4).scale(1e-2));
    }
  }
}

TEST_CASE("an empty micro-batch has loss 0 and zero gradients, with or without an input") {
  for (const DiffusionConfig& config : tiny_families()) {
    const Model model = build_diffusion(config, tiny_objective(config));
    for (const bool null : {false, true}) {
      const Trained trained = train(model, tiny_pictures(config, {.ids = {}, .null = null}));
      CHECK(trained.slots[model.loss_slot].item<double>() == 0);
      CHECK(trained.slots[model.sample_losses_slot].numel() == 0);
      for (size_t i = 0; i < model.params.size(); ++i)
        CHECK(grad_or_zero(model, trained.params, static_cast<ParamId>(i))
                  .abs()
                  .sum()
                  .item<double>() == 0);
    }
  }
}

TEST_CASE("pictures of any multiple of the patch; others and too large ones are refused") {
  const DiffusionConfig config = tiny_sd3();
  const Model model = build_diffusion(config, tiny_objective(config));
  const SimpleParams params = lively_params(model, 1);
  CHECK(std::isfinite(
      loss_of(model, params, tiny_pictures(config, {.ids = {1}, .height = 10, .width = 2}))));
  CHECK_THROWS_WITH_AS(
      loss_of(model, params, tiny_pictures(config, {.ids = {1}, .height = 12, .width = 2})),
      doctest::Contains("position table"), DataError);
  CHECK_THROWS_WITH_AS(
      loss_of(model, params, tiny_pictures(config, {.ids = {1}, .height = 5, .width = 2})),
      doctest::Contains("5 x 2"), DataError);
}

TEST_CASE("asked about noise, a model answers without a loss") {
  for (const DiffusionConfig& config : tiny_families()) {
    const Model model = build_diffusion(config, tiny_objective(config));
    const SimpleParams params = lively_params(model, 1);
    Batch training = tiny_pictures(config, {.ids = {0, 2}});
    training.want_logits = true;
    const SlotValues want = eager_forward(model, params, training);
    auto in = std::make_shared<DiffusionInput>(*training.diffusion);
    in->noisy = Process(tiny_objective(config)).noisy(in->clean, *in);
    in->clean = in->noise = at::Tensor();
    Batch asked = training;
    asked.diffusion = in;
    const SlotValues got = eager_forward(model, params, asked);
    CHECK(at::equal(got[model.logits_slot], want[model.logits_slot]));
    CHECK(got[model.loss_slot].item<double>() == 0);
  }
}

TEST_CASE("clean pictures may come from a slot") {
  const DiffusionConfig config = tiny_dit();
  Model model;
  const Slot clean = model.add_slot("clean");
  Segment source{.name = "source", .out = {clean}};
  source.forward = [](const SegmentContext& context, std::span<const at::Tensor>) {
    return std::vector<at::Tensor>{context.batch.pixel_values};
  };
  model.blocks.push_back({"source", Part::kVae, {source}});
  add_diffusion(model, config, tiny_objective(config), clean);
  const Model direct = build_diffusion(config, tiny_objective(config));
  Batch batch = tiny_pictures(config, {.ids = {0, 1}});
  const double want = loss_of(direct, lively_params(direct, 1), batch);
  auto in = std::make_shared<DiffusionInput>(*batch.diffusion);
  batch.pixel_values = in->clean;
  in->clean = at::Tensor();
  batch.diffusion = in;
  CHECK(loss_of(model, lively_params(model, 1), batch) == doctest::Approx(want).epsilon(1e-13));
}

TEST_CASE("half precision: the loss stays in fp32, the numbers near fp32's") {
  for (const DiffusionConfig& config : tiny_families()) {
    const Model model = build_diffusion(config, tiny_objective(config));
    const Batch batch = tiny_pictures(config, {.ids = {0, 1, 2}}, at::kFloat);
    const double want = loss_of(model, lively_params(model, 1, at::kFloat), batch);
    for (const at::ScalarType dtype : {at::kBFloat16, at::kHalf}) {
      const SlotValues slots = eager_forward(model, lively_params(model, 1, dtype), batch);
      CHECK((slots[model.loss_slot].scalar_type() == at::kFloat));
      CHECK(slots[model.loss_slot].item<double>() == doctest::Approx(want).epsilon(.1));
    }
  }
}

TEST_CASE("parts, fixed tables and initial values are declared as the papers have them") {
  const Model model = build_diffusion(tiny_sd3(), tiny_objective(tiny_sd3()));
  const ParamId table = find_param(model, "pos_embed.pos_embed");
  CHECK(model.params[table].fixed);
  CHECK(!params_in_use(model)[table]);
  CHECK(!params_in_use(model)[find_param(model, "transformer_blocks.1.attn.add_q_proj.weight")]);
  for (const ParamSpec& spec : model.params) CHECK((spec.part == Part::kTransformer));
  const Model dit = build_diffusion(tiny_dit(), tiny_objective(tiny_dit()));
  const auto init = [&](const char* name) { return dit.params[find_param(dit, name)].init; };
  CHECK((init("transformer_blocks.1.norm1.linear.weight") == Init::kZeros));
  CHECK((init("proj_out_2.weight") == Init::kZeros));
  CHECK((init("pos_embed.proj.weight") == Init::kXavierMatrix));
  CHECK((init("transformer_blocks.0.attn1.to_q.weight") == Init::kXavierUniform));
  CHECK(
      (init("transformer_blocks.0.norm1.emb.timestep_embedder.linear_1.weight") == Init::kNormal));
  CHECK_THROWS_AS(
      find_param(dit, "transformer_blocks.1.norm1.emb.class_embedder.embedding_table.weight"),
      InternalError);
}

TEST_CASE("published sizes: DiT-XL/2 has its parameters, and its forward its FLOPs") {
  DiffusionConfig xl;
  const Model model = build_diffusion(xl, {});
  double count = 0;
  for (const ParamSpec& spec : model.params) {
    double size = 1;
    for (int64_t d : spec.shape) size *= static_cast<double>(d);
    count += size;
  }
  CHECK(count == doctest::Approx(675e6).epsilon(.003));
  // One 256 x 256 picture: 118.6 billion multiply-adds in the paper's table.
  const Sizes sizes{.images = 1, .patches = 256, .patch_rows = 256, .picture_pairs = 65536};
  const double forward =
      model_flops(model, sizes, std::vector<bool>(model.params.size(), true)).forward;
  CHECK(forward / 2 == doctest::Approx(118.6e9).epsilon(.02));
}

TEST_CASE("a bound without a learned variance is refused") {
  DiffusionConfig config = tiny_dit();
  config.learned_sigma = false;
  CHECK_THROWS_WITH_AS(build_diffusion(config, {.variational_bound = true}),
                       doctest::Contains("learned variance"), UsageError);
}
