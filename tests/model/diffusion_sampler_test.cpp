#include "lib/model/diffusion_sampler.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include "lib/model/diffusion.h"
#include "tests/model/tiny_diffusion.h"
#include "tests/model/tiny_llava.h"

using namespace mm::model;
using namespace mm::model::test;

TEST_CASE("guidance asks once with and once without the condition") {
  for (const DiffusionConfig& config : tiny_families()) {
    CAPTURE(diffusion_family_name(config.family));
    const Objective objective = tiny_objective(config);
    const Model model = build_diffusion(config, objective);
    const SimpleParams params = lively_params(model, 1);
    Batch condition = tiny_pictures(config, {.ids = {1, 2}});
    auto in = std::make_shared<DiffusionInput>(*condition.diffusion);
    const at::Tensor x = in->noise;
    in->clean = in->noise = at::Tensor();
    condition.diffusion = in;
    const auto ask = [&](const Batch& batch, double scale) {
      return model_predictor({model, config, objective, params, batch}, {.scale = scale})(x, 300);
    };
    // Without a condition: no class, dropped captions, no tokens.
    Batch none = condition;
    auto empty = std::make_shared<DiffusionInput>(*in);
    empty->labels = at::full({2}, config.classes, at::kLong);
    empty->caption_dropped = at::ones({2}, at::kBool);
    none.diffusion = empty;
    const at::Tensor with = ask(condition, 1), without = ask(none, 1);
    CHECK(relative(with, without) > 1e-3);
    CHECK(relative(ask(condition, 4), without + 4 * (with - without)) < 1e-11);
    CHECK(relative(ask(condition, 0), without) < 1e-11);
    CHECK(with.size(1) == config.in_channels);
  }
}

TEST_CASE("a model draws from noise, the same picture whoever is drawn beside it") {
  const DiffusionConfig config = tiny_texted();
  const Objective objective = tiny_objective(config);
  const Model model = build_diffusion(config, objective);
  const SimpleParams params = lively_params(model, 1);
  const Process process(objective);
  const auto draw = [&](const std::vector<int64_t>& ids) {
    Batch condition = tiny_pictures(config, {.ids = ids});
    const at::Tensor start = condition.diffusion->noise;
    auto in = std::make_shared<DiffusionInput>(*condition.diffusion);
    in->clean = in->noise = at::Tensor();
    condition.diffusion = in;
    return sample(process, {.steps = 4}, start,
                  model_predictor({model, config, objective, params, condition}, {.scale = 2}));
  };
  const at::Tensor both = draw({1, 2});
  CHECK(relative(draw({2})[0], both[1]) < 1e-10);
  CHECK(!both.requires_grad());
}
