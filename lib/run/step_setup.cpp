#include "lib/run/step_setup.h"

#include <algorithm>

#include "lib/base/error.h"
#include "lib/run/model_setup.h"

namespace mm::run {
namespace {

model::Part part_of(const std::string& word) {
  for (size_t p = 0; p < model::kPartCount; ++p) {
    const auto part = static_cast<model::Part>(p);
    if (word == model::part_name(part)) return part;
  }
  throw InternalError("no part is named {}", word);
}

}  // namespace

optim::Precision run_precision(const Recipe& recipe) {
  optim::Precision precision;
  precision.compute = compute_dtype(recipe.compute);
  precision.master = precision.compute == at::kDouble ? at::kDouble : at::kFloat;
  for (const auto& [part, word] : recipe.part_compute)
    precision.part_compute[static_cast<size_t>(part_of(part))] = compute_dtype(word);
  return precision;
}

bool counts_in_fp16(const optim::Precision& precision) {
  for (size_t p = 0; p < model::kPartCount; ++p) {
    if (precision.compute_of(static_cast<model::Part>(p)) == at::kHalf) return true;
  }
  return false;
}

std::vector<bool> trained_from(const Recipe& recipe, const model::Model& model, size_t first) {
  std::vector<bool> trained(model.params.size(), false);
  for (size_t s = first; s < recipe.stages.size(); ++s) {
    const std::vector<bool> here = trainable_flags(model, recipe.stages[s].train);
    for (size_t i = 0; i < trained.size(); ++i) trained[i] = trained[i] || here[i];
  }
  return trained;
}

optim::EmaOptions average_options(const EmaRecipe& recipe) {
  optim::EmaOptions options{.decay = recipe.decay,
                            .warm_up = optim::ema_warm_up(recipe.warmup).value(),
                            .power = recipe.power};
  options.check();
  return options;
}

data::PlanOptions plan_options(const Recipe& recipe, const StageRecipe& stage) {
  return {.seed = recipe.seed,
          .sequence_length = static_cast<int32_t>(stage.sequence_length),
          .max_images = static_cast<int32_t>(stage.max_images),
          .packs_per_step = static_cast<int32_t>(stage.packs_per_step),
          .packing = data::packing_from_name(stage.packing).value(),
          .oversize = data::oversize_from_name(stage.oversize).value(),
          .max_attention_pairs = stage.max_attention_pairs,
          .image_cost = stage.image_cost,
          .batch_pixels = stage.batch_pixels,
          .leftovers = data::leftovers_from_name(stage.leftovers).value()};
}

step::BuildOptions build_options(const Recipe& recipe, const StageRecipe& stage,
                                 const std::vector<bool>& trainable) {
  step::BuildOptions options{.trainable = trainable, .clip = stage.clip_norm > 0};
  using Kind = step::Recompute::Kind;
  const std::string& mode = recipe.recompute.mode;
  options.recompute.kind = mode == "block"       ? Kind::kBlock
                           : mode == "selective" ? Kind::kSelective
                                                 : Kind::kNone;
  options.recompute.pieces = recipe.recompute.pieces;
  options.frozen_ahead = recipe.frozen_ahead;
  options.pictures_at_once = static_cast<int>(recipe.frozen_pictures_at_once);
  if (!recipe.part_compute.empty()) {
    const optim::Precision precision = run_precision(recipe);
    for (size_t p = 0; p < model::kPartCount; ++p)
      options.compute.push_back(precision.compute_of(static_cast<model::Part>(p)));
  }
  return options;
}

}  // namespace mm::run
