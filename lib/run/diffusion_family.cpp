#include "lib/run/diffusion_family.h"

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/ckpt/hf_index.h"
#include "lib/model/diffusion.h"
#include "lib/model/diffusion_load.h"
#include "lib/run/diffusion_batch.h"
#include "lib/run/diffusion_setup.h"
#include "lib/run/grid_drawing.h"

namespace mm::run {

DiffusionFamily::DiffusionFamily(const Recipe& recipe,
                                 const std::vector<data::DatasetManifest>& sets)
    : recipe_(recipe),
      inputs_(recipe, sets),
      config_(configure_diffusion(recipe, sets, inputs_.shape())),
      objective_(objective_of(recipe.diffusion)),
      norm_(pixel_norm(recipe.model.normalise.mean, recipe.model.normalise.std)),
      encoder_drop_(encoder_drops(recipe.diffusion, inputs_.shape())) {
  if (recipe.sample.every_steps > 0)
    grid_ = std::make_unique<const GridDrawing>(recipe, sets.back(), config_, inputs_);
}

DiffusionFamily::~DiffusionFamily() = default;

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
                                                    .label_drop = recipe_.diffusion.label_drop,
                                                    .encoder_drop = encoder_drop_},
                                          .encoded = inputs_.stored(options.stage),
                                          .online = inputs_.online(options.stage),
                                          .pictures_at_once = recipe_.frozen_pictures_at_once,
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

/// For the export of a text encoder that is trained with the model: its tokenizer.
static void write_tokenizer(const std::filesystem::path& run, const data::DatasetManifest& set) {
  const std::string& file = set.tokenizer.file.file;
  if (file != "tokenizer.json") return;
  std::filesystem::create_directories(run / "hf");
  write_file_atomic(run / "hf" / file, read_file(run / file));
  const Json config{{"tokenizer_class", "PreTrainedTokenizerFast"},
                    {"clean_up_tokenization_spaces", false}};
  write_file_atomic(run / "hf/tokenizer_config.json", config.dump(2) + "\n");
}

void DiffusionFamily::check_directory(const std::filesystem::path& run) const {
  const EncoderRecord record = inputs_.record();
  if (record.vae.empty() && record.text.empty()) return;
  const EncoderRecord before = read_encoder_record(run);
  const auto changed = [](const std::string& then, const std::string& now) {
    return !then.empty() && then != now;
  };
  const std::string otherwise = writing_difference(before.writing, record.writing);
  if (!otherwise.empty())
    throw UsageError(
        "{}: this run's captions were written otherwise: {}; put the former files back, "
        "or start another run",
        run.string(), otherwise);
  if (changed(before.vae, record.vae) || changed(before.text, record.text))
    throw UsageError(
        "{}: this run was trained on the output of another {}; put the former files back, or start "
        "another run",
        run.string(), changed(before.vae, record.vae) ? "model.vae" : "model.text_model");
}

void DiffusionFamily::write_side_files(const std::filesystem::path& run,
                                       const data::DatasetManifest& set) const {
  if (config_.text.vocab > 0) write_tokenizer(run, set);
  const EncoderRecord record = inputs_.record();
  if (record.vae.empty() && record.text.empty()) return;
  write_file_atomic(run / "encoders.json", to_json(record).dump(2) + "\n");
}

std::vector<image::Image> DiffusionFamily::draw_row(int64_t row,
                                                    const model::ParamView& params) const {
  MM_CHECK(grid_ != nullptr, "no [sample] in the recipe");
  return grid_->row(row, params);
}

void DiffusionFamily::load_published(optim::ParamStore& params) const {
  const std::string origin = recipe_.model.from.string();
  const std::vector<at::Tensor> values = model::load_diffusion_weights(
      params.model(), config_, ckpt::HfWeights::open(recipe_.model.from), origin);
  for (size_t i = 0; i < values.size(); ++i) params.set(static_cast<model::ParamId>(i), values[i]);
}

}  // namespace mm::run
