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
