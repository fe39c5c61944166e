#include "lib/model/eager.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>
#include <torch/csrc/autograd/autograd.h>

#include "lib/base/error.h"
#include "tests/model/tiny_llava.h"

using namespace mm::model;
using namespace mm::model::test;

namespace {

const std::vector<TinySample> kSamples{{1, {1, 12, 13, 14}}, {0, {1, 22, 23}}, {2, {3, 4}}};

/// The loss with the whole model under one tape, as a plain framework would run it.
at::Tensor whole_graph_loss(const Model& model, const ParamView& params, const Batch& batch) {
  std::vector<at::Tensor> values(model.slots.size());
  for (const Block& block : model.blocks) {
    for (const Step& step : block.steps) {
      const Segment& segment = std::get<Segment>(step);
      std::vector<at::Tensor> in;
      for (Slot slot : segment.in) in.push_back(values[slot]);
      const auto out = segment.forward({params, batch}, in);
      for (size_t i = 0; i < out.size(); ++i) values[segment.out[i]] = out[i];
    }
  }
  return values[model.loss_slot];
}

}  // namespace

TEST_CASE("block by block gives the gradients of one tape over the whole model, to the bit") {
  const LlavaConfig config = tiny_config();
  const Model model = build_llava(config);
  const Batch batch = tiny_batch(config, kSamples);
  SimpleParams params = lively_params(model, 7);
  const SlotValues values = eager_train({model, params, params.trainable(), params, 0.125}, batch);
  const at::Tensor loss = whole_graph_loss(model, params, batch);
  CHECK(at::equal(values[model.loss_slot], loss.detach()));
  std::vector<at::Tensor> leaves;
  for (size_t i = 0; i < model.params.size(); ++i)
    leaves.push_back(params.get(static_cast<ParamId>(i)));
  const auto want =
      torch::autograd::grad({loss}, leaves, {at::full_like(loss, 0.125)}, std::nullopt, false,
                            /*allow_unused=*/true);
  for (size_t i = 0; i < leaves.size(); ++i) {
    CAPTURE(model.params[i].name);
    const at::Tensor& got = params.grad(static_cast<ParamId>(i));
    REQUIRE(got.defined() == want[i].defined());
    if (got.defined()) CHECK(at::equal(got, want[i]));
  }
}

TEST_CASE("evaluation gives the loss of training and keeps no tape") {
  const LlavaConfig config = tiny_config();
  const Model model = build_llava(config);
  const Batch batch = tiny_batch(config, kSamples);
  SimpleParams params = lively_params(model, 7);
  const SlotValues trained = eager_train({model, params, params.trainable(), params, 1.0}, batch);
  const SlotValues evaluated = eager_forward(model, params, batch);
  CHECK(at::equal(trained[model.loss_slot], evaluated[model.loss_slot]));
  for (const at::Tensor& value : evaluated) CHECK(!value.requires_grad());
}

TEST_CASE("SimpleParams adds gradients up in fp32 and forgets them when told") {
  Model model;
  const ParamId id = model.add_param({.name = "w", .shape = {2}});
  SimpleParams params(model, {at::ones({2}, at::kBFloat16)}, {true});
  CHECK(!params.grad(id).defined());
  params.add(id, at::full({2}, 256.0, at::kBFloat16));
  params.add(id, at::full({2}, 1.0, at::kBFloat16));
  CHECK((params.grad(id).scalar_type() == at::kFloat));
  CHECK(params.grad(id)[0].item<float>() == 257.0F);
  params.clear_grads();
  CHECK(!params.grad(id).defined());
}

TEST_CASE("SimpleParams refuses values that are not the model's, the driver refuses boundaries") {
  Model model;
  model.add_param({.name = "w", .shape = {2}});
  CHECK_THROWS_WITH_AS(SimpleParams(model, {at::ones({3})}, {true}),
                       doctest::Contains("w has another shape"), mm::InternalError);
  CHECK_THROWS_AS(SimpleParams(model, {}, {}), mm::InternalError);
  model.blocks.push_back({"split", Part::kLanguage, {Boundary{}}});
  const SimpleParams params(model, {at::ones({2})}, {true});
  CHECK_THROWS_WITH_AS(eager_forward(model, params, Batch{}),
                       doctest::Contains("block split has a boundary"), mm::InternalError);
}
