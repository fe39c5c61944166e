#include "lib/model/steps.h"

#include "lib/base/error.h"
#include "lib/model/llama.h"
#include "tests/model/operation_check.h"

using namespace mm::model;
using namespace mm::model::test;

TEST_CASE("join: outer slots stay, local ones vanish, parameters and costs add up") {
  Segment first{.name = "a", .in = {0}, .out = {kLocalSlot}, .params = {3}};
  first.forward = [](const SegmentContext&, std::span<const at::Tensor> x) {
    return std::vector<at::Tensor>{x[0] * 2};
  };
  first.cost = [](const Sizes&) {
    return SegmentCost{.forward_flops = 1, .attention_flops = 1, .saved_bytes = 2};
  };
  Segment second{.name = "b", .in = {0, kLocalSlot}, .out = {1}, .params = {3, 4}};
  second.forward = [](const SegmentContext&, std::span<const at::Tensor> x) {
    return std::vector<at::Tensor>{x[0] + x[1]};
  };
  second.cost = [](const Sizes&) { return SegmentCost{.forward_flops = 10, .saved_bytes = 20}; };
  const Segment whole = join("ab", {first, Boundary{.slot = kLocalSlot}, second});
  CHECK(whole.in == std::vector<Slot>{0});
  CHECK(whole.out == std::vector<Slot>{1});
  CHECK(whole.params == std::vector<ParamId>{3, 4});
  CHECK(whole.cost({}).forward_flops == 11);
  CHECK(whole.cost({}).attention_flops == 1);
  CHECK(whole.cost({}).saved_bytes == 22);
  const Batch batch;
  const Model model;
  const SimpleParams params(model, {}, {});
  const std::vector<at::Tensor> in{at::ones({2}, at::kDouble)};
  CHECK(whole.forward({params, batch}, in)[0].sum().item<double>() == 6);
  CHECK_THROWS_AS(join("nothing", {Boundary{}}), mm::InternalError);
}

TEST_CASE("a decoder layer's pieces have a boundary of the tensor axis between each two") {
  Model model;
  const Slot x = model.add_slot("x"), y = model.add_slot("y");
  const auto pieces = decoder_layer_pieces(model, tiny_config().text, "", 0, x, y);
  CHECK(pieces.size() == 9);
  for (size_t i = 0; i < pieces.size(); ++i)
    CHECK(std::holds_alternative<Boundary>(pieces[i]) == (i % 2 == 1));
  const Segment whole = join("layer", pieces);
  CHECK(whole.in == std::vector<Slot>{x});
  CHECK(whole.out == std::vector<Slot>{y});
  CHECK(whole.params.size() == model.params.size());
}
