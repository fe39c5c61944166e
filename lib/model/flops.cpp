#include "lib/model/flops.h"

#include <algorithm>

#include "lib/model/lora.h"

namespace mm::model {

ModelFlops model_flops(const Model& model, const Sizes& sizes, const std::vector<bool>& trainable) {
  const auto needs = slots_needing_grad(model, trainable);
  const std::vector<bool> adapters = adapter_params(model);
  ModelFlops flops;
  for (const Block& block : model.blocks) {
    for (const Step& step : block.steps) {
      const auto* segment = std::get_if<Segment>(&step);
      if (segment == nullptr || !segment->cost) continue;
      const SegmentCost cost = segment->cost(sizes);
      const double products = cost.forward_flops - cost.attention_flops - cost.adapter_flops;
      const auto trains = [&](bool adapter) {
        return std::ranges::any_of(
            segment->params, [&](ParamId id) { return trainable[id] && adapters[id] == adapter; });
      };
      const bool weights = trains(false), low_rank = trains(true);
      const bool inputs = std::ranges::any_of(segment->in, [&](Slot slot) { return needs[slot]; });
      flops.forward += cost.forward_flops;
      flops.backward += products * (static_cast<int>(weights) + static_cast<int>(inputs));
      flops.backward += cost.adapter_flops * (low_rank ? 2 : static_cast<int>(inputs));
      if (weights || low_rank || inputs) flops.backward += 2 * cost.attention_flops;
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
  sum.patch_rows += b.patch_rows;
  sum.picture_pairs += b.picture_pairs;
  sum.window_pairs += b.window_pairs;
  return sum;
}

}  // namespace mm::model
