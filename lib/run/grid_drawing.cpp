#include "lib/run/grid_drawing.h"

#include <ATen/ATen.h>

#include "lib/base/error.h"
#include "lib/model/diffusion.h"
#include "lib/run/diffusion_setup.h"

namespace mm::run {
namespace {

/// The weights as a drawing run has them, converted once.
model::SimpleParams in_float(const model::Model& model, const model::ParamView& params) {
  std::vector<at::Tensor> values;
  for (size_t i = 0; i < model.params.size(); ++i)
    values.push_back(params.get(static_cast<model::ParamId>(i)).detach().to(at::kFloat));
  return {model, std::move(values), std::vector<bool>(model.params.size(), false)};
}

TrainedDiffusion model_in_training(const Recipe& recipe, const data::DatasetManifest& set,
                                   const model::DiffusionConfig& config) {
  TrainedDiffusion drawn{.run = "[sample]"};
  drawn.recipe = recipe;
  drawn.seed = recipe.seed;
  drawn.config = config;
  drawn.objective = objective_of(recipe.diffusion);
  drawn.model = std::make_unique<model::Model>(model::build_diffusion(config, drawn.objective));
  drawn.norm = pixel_norm(recipe.model.normalise.mean, recipe.model.normalise.std);
  drawn.data = set;
  if (config.takes_captions())
    drawn.tokenizer = text::load_tokenizer(recipe.stages.back().data / set.tokenizer.file.file);
  return drawn;
}

}  // namespace

GridDrawing::GridDrawing(const Recipe& recipe, const data::DatasetManifest& set,
                         const model::DiffusionConfig& config, const DiffusionInputs& inputs)
    : recipe_(recipe), inputs_(inputs), drawn_(model_in_training(recipe, set, config)) {
  if (inputs.shape().channels > 0) drawn_.made_by.vae = "latents";
  const ModelRecipe& model = recipe.model;
  if ((drawn_.draws_latents() && model.vae.empty()) ||
      (drawn_.reads_embeddings() && model.text_models.empty()))
    throw UsageError(
        "[sample]: grids of a run of latents or embeddings need the models they are of; give "
        "model.vae and model.text_model, or sample.every_steps = 0");
  for (const std::string& prompt : recipe.sample.prompts)
    conditions_.push_back(caption_condition(drawn_, prompt));
  for (const std::string& label : recipe.sample.labels)
    conditions_.push_back(label_condition(drawn_, label));
  if (conditions_.empty()) conditions_.emplace_back();
}

std::vector<image::Image> GridDrawing::row(int64_t number, const model::ParamView& params) const {
  const SampleRecipe& sample = recipe_.sample;
  DrawOptions options = usual_drawing(drawn_);
  set_sampler(options, sample.sampler, sample.steps);
  options.guidance.scale = sample.guidance;
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
