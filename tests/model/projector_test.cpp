#include "lib/model/projector.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cmath>

#include "tests/model/tiny_llava.h"

using namespace mm::model;
using namespace mm::model::test;

namespace {

// Features of 2 pictures, 5 rows each, through the projector alone.
at::Tensor project(const LlavaConfig& config, const at::Tensor& features, Model& model) {
  const Slot in = model.add_slot("tower");
  add_projector(model, config, in);
  const Segment& segment = std::get<Segment>(model.blocks[0].steps[0]);
  const SimpleParams params = lively_params(model, 3);
  const std::vector<at::Tensor> inputs{features};
  return segment.forward({params, Batch{}}, inputs)[0].detach();
}

at::Tensor features() {
  at::manual_seed(6);
  return at::randn({2, 5, 16}, at::kDouble);
}

}  // namespace

TEST_CASE("the projector drops the class token, or keeps it where the configuration says so") {
  LlavaConfig config = tiny_config();
  Model dropping, keeping;
  const at::Tensor without = project(config, features(), dropping);
  config.keep_first_row = true;
  const at::Tensor with = project(config, features(), keeping);
  CHECK(without.sizes() == at::IntArrayRef({8, 24}));
  CHECK(with.sizes() == at::IntArrayRef({10, 24}));
  CHECK(relative(without, with.view({2, 5, 24}).narrow(1, 1, 4).reshape({8, 24})) < 1e-14);
}

TEST_CASE("the projector's GELU is the exact one, by erf") {
  Model model;
  const at::Tensor got = project(tiny_config(), features(), model);
  const SimpleParams params = lively_params(model, 3);
  const at::Tensor x = features().narrow(1, 1, 4).reshape({8, 16});
  const at::Tensor inner = at::linear(x, params.get(0).detach(), params.get(1).detach());
  const at::Tensor gelu = inner * 0.5 * (1 + at::erf(inner / std::sqrt(2.0)));
  CHECK(relative(got, at::linear(gelu, params.get(2).detach(), params.get(3).detach())) < 1e-14);
}

TEST_CASE("the projector has biases only where the configuration says so") {
  LlavaConfig config = tiny_config();
  Model with, without;
  project(config, features(), with);
  config.projector_bias = false;
  project(config, features(), without);
  CHECK(with.params.size() == 4);
  CHECK(without.params.size() == 2);
  CHECK(without.params[1].name == "multi_modal_projector.linear_2.weight");
}

TEST_CASE("a linear projector is one product: output and gradients are at::linear's") {
  LlavaConfig config = tiny_config();
  config.projector = ProjectorKind::kLinear;
  Model model;
  const Slot in = model.add_slot("tower");
  add_projector(model, config, in);
  REQUIRE(model.params.size() == 2);
  CHECK(model.params[0].name == "multi_modal_projector.linear.weight");
  CHECK(model.params[1].name == "multi_modal_projector.linear.bias");
  const SimpleParams params = lively_params(model, 3);
  const at::Tensor x = features().requires_grad_(), same = features().requires_grad_(),
                   weight = params.get(0).detach().clone().requires_grad_(),
                   bias = params.get(1).detach().clone().requires_grad_();
  const Segment& segment = std::get<Segment>(model.blocks[0].steps[0]);
  const std::vector<at::Tensor> inputs{x};
  const at::Tensor got = segment.forward({params, Batch{}}, inputs)[0];
  const at::Tensor want = at::linear(same.narrow(1, 1, 4).reshape({8, 16}), weight, bias);
  CHECK(relative(got.detach(), want.detach()) < 1e-14);
  (got * got).sum().backward();
  (want * want).sum().backward();
  CHECK(relative(params.get(0).grad(), weight.grad()) < 1e-14);
  CHECK(relative(params.get(1).grad(), bias.grad()) < 1e-14);
  CHECK(relative(x.grad(), same.grad()) < 1e-14);
}

TEST_CASE(
    "a linear projector costs one product, and has a bias only where the configuration says") {
  LlavaConfig config = tiny_config();
  config.projector = ProjectorKind::kLinear;
  config.projector_bias = false;
  Model model;
  add_projector(model, config, model.add_slot("tower"));
  CHECK(model.params.size() == 1);
  const Segment& segment = std::get<Segment>(model.blocks[0].steps[0]);
  const SegmentCost cost = segment.cost({.images = 2, .patches = 4});
  CHECK(cost.forward_flops == 2 * 8 * 16 * 24);
  CHECK(cost.saved_bytes == 8 * 2 * 16);
}
