#pragma once
#include <string>
#include <utility>
#include <vector>

#include "lib/model/block.h"

namespace mm::optim {

/// Seven parameters in program order. "unused" is read by no segment; "embed" is tied: the first
/// and the last segment read it.
enum ToyParam : model::ParamId { kPatch, kPatchBias, kUnused, kProjector, kEmbed, kNorm, kHead };

inline model::ParamSpec toy_param(std::string name, std::vector<int64_t> shape, model::Part part) {
  model::ParamSpec spec;
  spec.decay = shape.size() >= 2;
  spec.name = std::move(name);
  spec.shape = std::move(shape);
  spec.part = part;
  return spec;
}

inline model::Segment toy_segment(std::vector<model::ParamId> params) {
  model::Segment segment;
  segment.params = std::move(params);
  return segment;
}

inline model::Model toy_model() {
  using model::Part;
  model::Model model;
  model.params = {toy_param("vision.patch", {4, 3}, Part::kVision),
                  toy_param("vision.bias", {5}, Part::kVision),
                  toy_param("vision.unused", {2, 2}, Part::kVision),
                  toy_param("projector.weight", {3, 7}, Part::kProjector),
                  toy_param("text.embed", {11, 3}, Part::kLanguage),
                  toy_param("text.norm", {3}, Part::kLanguage),
                  toy_param("text.head", {2, 3}, Part::kLanguage)};
  model.params[kNorm].init = model::Init::kOnes;
  model.params[kPatchBias].init = model::Init::kZeros;
  model.blocks = {
      {.name = "vision", .part = Part::kVision, .steps = {toy_segment({kPatch, kPatchBias})}},
      {.name = "projector", .part = Part::kProjector, .steps = {toy_segment({kProjector})}},
      {.name = "embed", .part = Part::kLanguage, .steps = {toy_segment({kEmbed})}},
      {.name = "layer", .part = Part::kLanguage, .steps = {toy_segment({kNorm})}},
      {.name = "head", .part = Part::kLanguage, .steps = {toy_segment({kHead, kEmbed})}}};
  return model;
}

}  // namespace mm::optim
