#include "lib/model/lora.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "lib/base/error.h"
#include "lib/model/flops.h"
#include "lib/model/initial_draw.h"
#include "tests/model/tiny_llava.h"

using namespace mm::model;
using namespace mm::model::test;

namespace {

const LoraOptions kEverywhere{
    .rank = 3,
    .alpha = 12,
    .targets = {{Part::kVision, {"*"}}, {Part::kProjector, {"*"}}, {Part::kLanguage, {"*"}}}};

Model adapted(const LoraOptions& options) {
  Model model = build_llava(tiny_config());
  add_lora(model, options);
  return model;
}

std::vector<at::Tensor> values_of(const Model& model, const SimpleParams& params) {
  std::vector<at::Tensor> values;
  for (size_t i = 0; i < model.params.size(); ++i)
    values.push_back(params.get(static_cast<ParamId>(i)).detach().clone());
  return values;
}

/// The plain model with every adapted weight replaced by W + scale * B A, in the same dtype.
SimpleParams merged(const Model& plain, const Model& model, const SimpleParams& params) {
  std::vector<at::Tensor> values = values_of(model, params);
  for (const Adapter& adapter : model.adapters)
    values[adapter.base] += adapter.scale * values[adapter.b].mm(values[adapter.a]);
  values.resize(plain.params.size());
  return SimpleParams(plain, std::move(values), std::vector<bool>(plain.params.size(), true));
}

std::vector<std::string> adapted_names(const Model& model) {
  std::vector<std::string> names;
  for (const Adapter& adapter : model.adapters) names.push_back(model.params[adapter.base].name);
  return names;
}

Batch mixed_batch() {
  return tiny_batch(tiny_config(), {{1, {3, 5, 7, 2}}, {0, {4, 4, 9}}, {2, {8, 1}}});
}

/// Parameters whose flag is set.
std::set<std::string> names_of(const Model& model, const std::vector<bool>& flags) {
  std::set<std::string> names;
  for (size_t i = 0; i < flags.size(); ++i)
    if (flags[i]) names.insert(model.params[i].name);
  return names;
}

}  // namespace

TEST_CASE("a model starts as it was: B is zero, A is drawn from its fan-in") {
  const Model plain = build_llava(tiny_config()), model = adapted(kEverywhere);
  const SimpleParams before = SimpleParams::random(plain, 5, at::kDouble);
  const SimpleParams after = SimpleParams::random(model, 5, at::kDouble);
  const Batch batch = mixed_batch();
  CHECK(at::equal(eager_forward(plain, before, batch)[plain.loss_slot],
                  eager_forward(model, after, batch)[model.loss_slot]));
  for (const Adapter& adapter : model.adapters) {
    CHECK(after.get(adapter.b).abs().max().item<double>() == 0);
    const at::Tensor a = after.get(adapter.a).abs();
    const double bound = 1 / std::sqrt(static_cast<double>(a.size(1)));
    CHECK(a.max().item<double>() <= bound);
    CHECK(a.max().item<double>() > 0.7 * bound);
  }
}

TEST_CASE(
    "forward and backward are those of W + alpha / rank B A, for every linear of every part") {
  const Model plain = build_llava(tiny_config()), model = adapted(kEverywhere);
  // 2 layers of the tower that run x 6, the projector's 2, 2 decoder layers x 7.
  REQUIRE(model.adapters.size() == 2 * 6 + 2 + 2 * 7);
  SimpleParams low = lively_params(model, 11), dense = merged(plain, model, low);
  const Batch batch = mixed_batch();
  const SlotValues a = eager_train({model, low, adapter_params(model), low}, batch);
  const SlotValues b = eager_train({plain, dense, dense.trainable(), dense}, batch);
  CHECK(relative(a[model.loss_slot], b[plain.loss_slot]) < 1e-13);
  for (const Adapter& adapter : model.adapters) {
    CAPTURE(model.params[adapter.base].name);
    // d loss / dA = s B^T dW and d loss / dB = s dW A^T, with dW of the dense weight.
    const at::Tensor dw = grad_or_zero(plain, dense, adapter.base) * adapter.scale;
    const at::Tensor da = low.get(adapter.b).t().mm(dw), db = dw.mm(low.get(adapter.a).t());
    CHECK(da.abs().max().item<double>() > 0);
    CHECK(relative(grad_or_zero(model, low, adapter.a), da) < 1e-11);
    CHECK(relative(grad_or_zero(model, low, adapter.b), db) < 1e-11);
  }
  for (size_t i = 0; i < plain.params.size(); ++i)
    CHECK_FALSE(low.grad(static_cast<ParamId>(i)).defined());
}

TEST_CASE("targets choose by name, by end of name and by pattern, in their part only") {
  const auto names = [](std::map<Part, std::vector<std::string>> targets) {
    return adapted_names(adapted({.rank = 2, .alpha = 2, .targets = std::move(targets)}));
  };
  const std::string layer = "language_model.model.layers.";
  CHECK(names({{Part::kLanguage, {"q_proj"}}}) ==
        std::vector<std::string>{layer + "0.self_attn.q_proj.weight",
                                 layer + "1.self_attn.q_proj.weight"});
  CHECK(names({{Part::kLanguage, {"layers.1.mlp.up_proj"}}}) ==
        std::vector<std::string>{layer + "1.mlp.up_proj.weight"});
  CHECK(names({{Part::kLanguage, {"*layers.0.mlp.*"}}}).size() == 3);
  CHECK(names({{Part::kProjector, {"*"}}}) ==
        std::vector<std::string>{"multi_modal_projector.linear_1.weight",
                                 "multi_modal_projector.linear_2.weight"});
  // The third layer of the tower does not run.
  CHECK(names({{Part::kVision, {"fc1", "fc2"}}}).size() == 4);
  CHECK(names({}).empty());
}

TEST_CASE("patterns: every star takes what it needs, and many stars take no longer") {
  const auto count = [](const std::string& pattern) {
    return adapted_names(adapted({.rank = 2, .targets = {{Part::kLanguage, {pattern}}}})).size();
  };
  CHECK(count("*") == 14);
  CHECK(count("***") == 14);
  CHECK(count("language_model.*_proj") == 14);
  CHECK(count("*layers.*.mlp*_proj") == 6);
  CHECK(count("*.1.*a*t*n*q*j") == 1);
  CHECK(count("*proj*") == 14);
  for (const std::string& none :
       {std::string("*_proj*_proj"), std::string("language_model"), std::string("model.*"),
        std::string("*.q_pro"), std::string(60, '*') + "Z", std::string("*e*l*e*l*e*l*e*l*e*l*Z")})
    CHECK_THROWS_WITH_AS(count(none), doctest::Contains("names no linear layer"), mm::UsageError);
}

TEST_CASE("a target that names nothing, or a rank that is too high, is refused") {
  CHECK_THROWS_WITH_AS(
      adapted({.rank = 2, .targets = {{Part::kLanguage, {"fc1"}}}}),
      "lora.language: \"fc1\" names no linear layer of that part; expected such as "
      "\"q_proj\" or \"*\"",
      mm::UsageError);
  CHECK_THROWS_AS(adapted({.rank = 2, .targets = {{Part::kLanguage, {"embed_tokens"}}}}),
                  mm::UsageError);
  CHECK_THROWS_WITH_AS(adapted({.rank = 24, .targets = {{Part::kLanguage, {"o_proj"}}}}),
                       "lora.rank: 24 is not below the sides of "
                       "language_model.model.layers.0.self_attn.o_proj.weight [24, 24]",
                       mm::UsageError);
}

TEST_CASE("parts without adapters are as before; adapters know their part") {
  const Model model = adapted({.rank = 2, .targets = {{Part::kLanguage, {"v_proj"}}}});
  CHECK(has_adapters(model, Part::kLanguage));
  CHECK_FALSE(has_adapters(model, Part::kVision));
  CHECK(names_of(model, adapter_params(model)) ==
        std::set<std::string>{"language_model.model.layers.0.self_attn.v_proj.lora_A.weight",
                              "language_model.model.layers.0.self_attn.v_proj.lora_B.weight",
                              "language_model.model.layers.1.self_attn.v_proj.lora_A.weight",
                              "language_model.model.layers.1.self_attn.v_proj.lora_B.weight"});
  for (const Adapter& adapter : model.adapters)
    CHECK(model.params[adapter.a].part == Part::kLanguage);
}

TEST_CASE("FLOPs: adapters add their products, a frozen base costs no weight gradient") {
  LlavaConfig config = tiny_config();
  const Model plain = build_llava(config);
  const Model model = adapted({.rank = 4, .targets = {{Part::kLanguage, {"*"}}}});
  const Sizes sizes{.tokens = 10, .samples = 1, .targets = 3, .attention_pairs = 55};
  std::vector<bool> none(plain.params.size(), false), all(plain.params.size(), false);
  for (size_t i = 0; i < all.size(); ++i) all[i] = plain.params[i].part == Part::kLanguage;
  double adapter_elements = 0;
  for (const Adapter& adapter : model.adapters)
    for (const ParamId id : {adapter.a, adapter.b})
      adapter_elements +=
          static_cast<double>(model.params[id].shape[0] * model.params[id].shape[1]);
  const double added = 2 * 10 * adapter_elements;
  const ModelFlops full = model_flops(plain, sizes, all);
  const ModelFlops low = model_flops(model, sizes, adapter_params(model));
  CHECK(low.forward == doctest::Approx(full.forward + added));
  const double head = 2.0 * 24 * 50 * 3, attention = 2 * 4 * 55 * 24.0;
  const double weights = full.forward - head - attention;
  // Full: products twice but the first layer's input, which is frozen text and pictures here.
  CHECK(low.backward < full.backward);
  const ModelFlops frozen =
      model_flops(model, sizes, std::vector<bool>(model.params.size(), false));
  CHECK(frozen.backward == 0);
  // The first layer's attention gets no input gradient; its MLP, the second layer and the head do.
  const double first_mlp =
      10 * 6.0 * static_cast<double>(config.text.hidden * config.text.intermediate);
  CHECK(low.backward ==
        doctest::Approx(weights / 2 + first_mlp + head + 2 * attention + 2 * added));
}
