#include "lib/model/block.h"

#include <algorithm>
#include <utility>

#include "lib/base/error.h"

namespace mm::model {

const char* part_name(Part part) {
  switch (part) {
    case Part::kVision:
      return "vision";
    case Part::kProjector:
      return "projector";
    case Part::kLanguage:
      return "language";
    case Part::kTextEncoder:
      return "text_encoder";
    case Part::kTransformer:
      return "transformer";
    case Part::kVae:
      return "vae";
  }
  throw InternalError("part {} has no name", static_cast<int>(part));
}

Slot Model::add_slot(std::string name) {
  slots.push_back(std::move(name));
  return static_cast<Slot>(slots.size()) - 1;
}

ParamId Model::add_param(ParamSpec spec) {
  params.push_back(std::move(spec));
  return static_cast<ParamId>(params.size()) - 1;
}

std::vector<bool> slots_needing_grad(const Model& model, const std::vector<bool>& trainable) {
  MM_CHECK(trainable.size() == model.params.size(), "{} flags for {} parameters", trainable.size(),
           model.params.size());
  std::vector<bool> needs(model.slots.size(), false);
  for (const Block& block : model.blocks) {
    for (const Step& step : block.steps) {
      const auto* segment = std::get_if<Segment>(&step);
      if (segment == nullptr) continue;
      const bool any =
          std::ranges::any_of(segment->params, [&](ParamId id) { return trainable[id]; }) ||
          std::ranges::any_of(segment->in, [&](Slot slot) { return needs[slot]; });
      for (Slot slot : segment->out) needs[slot] = needs[slot] || any;
    }
  }
  return needs;
}

std::vector<bool> params_in_use(const Model& model) {
  std::vector<bool> used(model.params.size(), false);
  for (const Block& block : model.blocks) {
    for (const Step& step : block.steps) {
      const auto* segment = std::get_if<Segment>(&step);
      if (segment == nullptr) continue;
      for (ParamId id : segment->params) used[id] = !model.params[id].fixed;
    }
  }
  return used;
}

Slot find_slot(const Model& model, std::string_view name) {
  const auto it = std::ranges::find(model.slots, name);
  MM_CHECK(it != model.slots.end(), "the model has no slot {}", name);
  return static_cast<Slot>(it - model.slots.begin());
}

ParamId find_param(const Model& model, std::string_view name) {
  const auto it = std::ranges::find(model.params, name, &ParamSpec::name);
  MM_CHECK(it != model.params.end(), "the model has no parameter {}", name);
  return static_cast<ParamId>(it - model.params.begin());
}

}  // namespace mm::model
