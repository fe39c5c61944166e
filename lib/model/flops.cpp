#include "lib/model/flops.h"

#include <algorithm>

namespace mm::model {

ModelFlops model_flops(const Model& model, const Sizes& sizes, const std::vector<bool>& trainable) {
  const auto needs = slots_needing_grad(model, trainable);
  ModelFlops flops;
  for (const Block& block : model.blocks) {
    for (const Step& step : block.steps) {
      const auto* segment = std::get_if<Segment>(&step);
      if (segment == nullptr || !segment->cost) continue;
      const SegmentCost cost = segment->cost(sizes);
      const double products = cost.forward_flops - cost.attention_flops;
      const bool weights =
          std::ranges::any_of(segment->params, [&](ParamId id) { return trainable[id]; });
      const bool inputs = std::ranges::any_of(segment->in, [&](Slot slot) { return needs[slot]; });
      flops.forward += cost.forward_flops;
      flops.backward += products * (static_cast<int>(weights) + static_cast<int>(inputs));
      if (weights || inputs) flops.backward += 2 * cost.attention_flops;
    }
  }
  return flops;
}

Sizes add_sizes(const Sizes& a, const Sizes& b) {
  Sizes sum = a;
  sum.tokens += b.tokens;
  sum.samples += b.samples;
  sum.images += b.images;
  sum.patches = std::max(a.patches, b.patches);
  sum.targets += b.targets;
  sum.attention_pairs += b.attention_pairs;
  return sum;
}

}  // namespace mm::model
