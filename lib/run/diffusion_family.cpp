#include "lib/run/diffusion_family.h"

#include "lib/base/error.h"
#include "lib/ckpt/hf_index.h"
#include "lib/model/diffusion.h"
#include "lib/model/diffusion_load.h"
#include "lib/run/diffusion_batch.h"
#include "lib/run/diffusion_setup.h"

namespace mm::run {

namespace {

std::vector<std::unique_ptr<EncodedSet>> open_encoded(const Recipe& recipe) {
  std::vector<std::unique_ptr<EncodedSet>> opened;
  const std::string vae = recipe.model.vae.empty() ? "" : model_hash(recipe.model.vae);
  const std::string text =
      recipe.model.text_model.empty() ? "" : model_hash(recipe.model.text_model);
  for (const StageRecipe& stage : recipe.stages) {
    opened.emplace_back();
    if (stage.encoded.empty()) continue;
    opened.back() = EncodedSet::open(stage.encoded, *data::Dataset::open(stage.data));
    if (!vae.empty()) opened.back()->require_vae(vae);
    if (!text.empty()) opened.back()->require_text(text);
  }
  return opened;
}

/// What all stages have; they must agree.
StoredInputs stored_inputs(const Recipe& recipe,
                           const std::vector<std::unique_ptr<EncodedSet>>& encoded) {
  for (size_t i = 0; i < encoded.size(); ++i) {
    const bool both = encoded[i] && encoded[0];
    if (bool(encoded[i]) != bool(encoded[0]) ||
        (both && (encoded[i]->settings().vae != encoded[0]->settings().vae ||
                  encoded[i]->settings().text != encoded[0]->settings().text)))
      throw UsageError("stage {}: encoded by other models than stage {}; encode both with the same",
                       recipe.stages[i].name, recipe.stages[0].name);
  }
  if (!encoded[0]) return {};
  const EncodedSettings& settings = encoded[0]->settings();
  return {.channels = settings.channels,
          .factor = settings.factor,
          .text_width = settings.text_width,
          .pooled_width = settings.pooled_width};
}

}  // namespace

DiffusionFamily::DiffusionFamily(const Recipe& recipe,
                                 const std::vector<data::DatasetManifest>& sets)
    : recipe_(recipe),
      encoded_(open_encoded(recipe)),
      config_(configure_diffusion(recipe, sets, stored_inputs(recipe, encoded_))),
      objective_(objective_of(recipe.diffusion)),
      norm_(pixel_norm(recipe.model.normalise.mean, recipe.model.normalise.std)) {}

/// Pixels along a side of what the model sees one of.
int64_t DiffusionFamily::factor() const {
  return encoded_[0] && encoded_[0]->settings().channels > 0 ? encoded_[0]->settings().factor : 1;
}

model::Model DiffusionFamily::build() const { return model::build_diffusion(config_, objective_); }

Json DiffusionFamily::config() const { return model::to_json(config_); }

PackFootprint DiffusionFamily::footprint(const data::Pack& pack) const {
  PackFootprint result;
  result.sizes = diffusion_sizes(config_, pack.pictures(), pack.bucket.height / factor(),
                                 pack.bucket.width / factor(), pack.tokens);
  const auto of = [&](model::Part part, int64_t rows, int64_t width) {
    result.block_input[static_cast<size_t>(part)] = static_cast<double>(rows * width);
  };
  of(model::Part::kTransformer, result.sizes.patch_rows, config_.hidden());
  of(model::Part::kTextEncoder, pack.tokens, config_.text.hidden);
  result.pictures = static_cast<double>(pack.pixels() / (factor() * factor())) *
                    static_cast<double>(config_.in_channels);
  return result;
}

model::Sizes DiffusionFamily::picture_sizes(const data::MicroBatch& mb) const {
  const model::Sizes all =
      diffusion_sizes(config_, mb.images, mb.height / factor(), mb.width / factor(), 0);
  return {.patch_rows = all.patch_rows, .picture_pairs = all.picture_pairs};
}

model::Batch DiffusionFamily::to_batch(const data::MicroBatch& micro_batch,
                                       const BatchOptions& options) const {
  return to_diffusion_batch(micro_batch, {.config = config_,
                                          .objective = objective_,
                                          .norm = norm_,
                                          .draws = {.seed = recipe_.seed,
                                                    .epoch = options.epoch,
                                                    .label_drop = recipe_.diffusion.label_drop},
                                          .encoded = encoded_.at(options.stage).get(),
                                          .dtype = options.precision.master});
}

std::optional<double> DiffusionFamily::divisor(const data::PlannedStep& step) const {
  if (!objective_.per_element) return std::nullopt;
  double elements = 0;
  for (const data::Pack& pack : step.packs)
    elements += static_cast<double>(pack.targets * (pack.bucket.pixels() / (factor() * factor())) *
                                    config_.in_channels);
  return elements;
}

void DiffusionFamily::load_published(optim::ParamStore& params) const {
  const std::string origin = recipe_.model.from.string();
  const std::vector<at::Tensor> values = model::load_diffusion_weights(
      params.model(), config_, ckpt::HfWeights::open(recipe_.model.from), origin);
  for (size_t i = 0; i < values.size(); ++i) params.set(static_cast<model::ParamId>(i), values[i]);
}

}  // namespace mm::run
