#include "lib/run/grid_drawing.h"

#include "lib/base/error.h"

namespace mm::run {
GridDrawing::GridDrawing(const Recipe& recipe, const data::DatasetManifest& set,
                         const model::DiffusionConfig& config, const DiffusionInputs& inputs)
    : recipe_(recipe), inputs_(inputs), drawn_(model_in_training(recipe, set, config)) {
  drawn_.run = "[sample]";
  if (inputs.shape().channels > 0) drawn_.made_by.vae = "latents";
  const ModelRecipe& model = recipe.model;
  if ((drawn_.draws_latents() && model.vae.empty()) ||
      (drawn_.reads_embeddings() && model.text_models.empty()))
    throw UsageError(
        "[sample]: grids of a run of latents or embeddings need the models they are of; give "
        "model.vae and model.text_model, or sample.every_steps = 0");
  if (recipe.sample.width > 0)
    check_picture_size(config, inputs.shape().factor, size(), "sample.size");
  for (const std::string& prompt : recipe.sample.prompts)
    conditions_.push_back(caption_condition(drawn_, prompt));
  for (const std::string& label : recipe.sample.labels)
    conditions_.push_back(label_condition(drawn_, label));
  if (conditions_.empty()) conditions_.emplace_back();
}

data::BucketShape GridDrawing::size() const {
  const SampleRecipe& sample = recipe_.sample;
  if (sample.width == 0) return drawn_.usual_size();
  return {.height = static_cast<uint16_t>(sample.height),
          .width = static_cast<uint16_t>(sample.width)};
}

std::vector<image::Image> GridDrawing::row(int64_t number, const model::ParamView& params) const {
  const SampleRecipe& sample = recipe_.sample;
  DrawOptions options = usual_drawing(drawn_);
  set_sampler(options, sample.sampler, sample.steps);
  options.guidance = {.scale = sample.guidance, .channels = sample.guide_three ? 3 : 0};
  options.size = size();
  options.seed = sample.seed;
  options.first = static_cast<uint64_t>(number * sample.columns);
  std::vector<Condition> conditions;
  for (int64_t i = 0; i < sample.columns; ++i)
    conditions.push_back(
        conditions_[(options.first + static_cast<uint64_t>(i)) % conditions_.size()]);
  std::call_once(loaded_, [&] { drawn_.encoders = inputs_.all(); });
  return draw_pictures(drawn_, in_float(*drawn_.model, params), conditions, options);
}

}  // namespace mm::run
