#include "lib/model/steps.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "lib/base/error.h"

namespace mm::model {
namespace {

void add_once(std::vector<int>& list, int value) {
  if (std::ranges::find(list, value) == list.end()) list.push_back(value);
}

using Pieces = std::shared_ptr<const std::vector<Segment>>;

std::vector<at::Tensor> run_pieces(const Pieces& pieces, const Segment& whole,
                                   const SegmentContext& context,
                                   std::span<const at::Tensor> inputs) {
  std::map<Slot, at::Tensor> values;
  for (size_t i = 0; i < whole.in.size(); ++i) values[whole.in[i]] = inputs[i];
  for (const Segment& piece : *pieces) {
    std::vector<at::Tensor> in;
    for (Slot slot : piece.in) in.push_back(values.at(slot));
    std::vector<at::Tensor> out = piece.forward(context, in);
    for (size_t i = 0; i < piece.out.size(); ++i) values[piece.out[i]] = std::move(out[i]);
  }
  std::vector<at::Tensor> outputs;
  for (Slot slot : whole.out) outputs.push_back(values.at(slot));
  return outputs;
}

SegmentCost sum_costs(const Pieces& pieces, const Sizes& sizes) {
  SegmentCost total;
  for (const Segment& piece : *pieces) {
    if (!piece.cost) continue;
    const SegmentCost cost = piece.cost(sizes);
    total.forward_flops += cost.forward_flops;
    total.attention_flops += cost.attention_flops;
    total.saved_bytes += cost.saved_bytes;
  }
  return total;
}

}  // namespace

Segment join(std::string name, const std::vector<Step>& pieces) {
  auto segments = std::make_shared<std::vector<Segment>>();
  for (const Step& step : pieces) {
    if (const auto* segment = std::get_if<Segment>(&step)) segments->push_back(*segment);
  }
  MM_CHECK(!segments->empty(), "{} has no pieces", name);
  Segment whole{.name = std::move(name)};
  for (const Segment& piece : *segments) {
    for (Slot slot : piece.in) {
      const bool inside =
          slot <= kLocalSlot || std::ranges::find(whole.out, slot) != whole.out.end();
      if (!inside) add_once(whole.in, slot);
    }
    for (Slot slot : piece.out) {
      if (slot > kLocalSlot) add_once(whole.out, slot);
    }
    for (ParamId id : piece.params) add_once(whole.params, id);
    whole.yields_loss = whole.yields_loss || piece.yields_loss;
  }
  const Pieces shared = segments;
  const Segment shape{.in = whole.in, .out = whole.out};
  whole.forward = [shared, shape](const SegmentContext& context,
                                  std::span<const at::Tensor> inputs) {
    return run_pieces(shared, shape, context, inputs);
  };
  whole.cost = [shared](const Sizes& sizes) { return sum_costs(shared, sizes); };
  return whole;
}

}  // namespace mm::model
