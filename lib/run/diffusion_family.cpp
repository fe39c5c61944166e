#include "lib/run/diffusion_family.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/error.h"
#include "lib/base/file.h"
#include "lib/ckpt/hf_index.h"
#include "lib/model/diffusion.h"
#include "lib/model/diffusion_load.h"
#include "lib/run/diffusion_batch.h"
#include "lib/run/diffusion_setup.h"
#include "lib/run/encoded_store.h"
#include "lib/run/grid_drawing.h"
#include "lib/run/held_out_loss.h"

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
  if (recipe.validation.every_steps > 0)
    held_out_ = std::make_unique<const HeldOutLoss>(recipe, sets.back(), config_, inputs_);
}

DiffusionFamily::~DiffusionFamily() = default;

model::Model DiffusionFamily::build() const { return model::build_diffusion(config_, objective_); }

Json DiffusionFamily::config() const { return model::to_json(config_); }

std::vector<OpenedData> DiffusionFamily::opened() const {
  std::vector<OpenedData> all = inputs_.opened();
  if (!held_out_) return all;
  for (OpenedData& more : held_out_->opened()) all.push_back(std::move(more));
  return all;
}

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
                                          .captions_at_once = recipe_.frozen_captions_at_once,
                                          .dtype = options.precision.master});
}

std::unique_ptr<data::SampleStore> DiffusionFamily::stage_store(
    size_t stage, const data::SampleStore& set) const {
  const EncodedSet* encoded = inputs_.stored(stage);
  return encoded == nullptr ? nullptr : std::make_unique<EncodedStore>(set, *encoded);
}

double DiffusionFamily::encoding_bytes(size_t stage, const data::Pack& pack) const {
  return inputs_.encoding_bytes(stage, pack,
                                {recipe_.frozen_pictures_at_once, recipe_.frozen_captions_at_once});
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

/// A line where captions of the stage are longer than the model reads. Their lengths are those of
/// the data set's tokenizer; captions that a text model fills up or cuts have model.text_padding.
std::string DiffusionFamily::cut_captions(size_t stage, const data::SampleStore& set) const {
  if (!config_.takes_captions() || inputs_.shape().text_length > 0) return "";
  const std::vector<data::SampleSize> sizes = set.sizes();
  int64_t cut = 0, longest = 0;
  for (const data::SampleSize& size : sizes) {
    cut += size.tokens > config_.caption_tokens ? 1 : 0;
    longest = std::max<int64_t>(longest, size.tokens);
  }
  if (cut == 0) return "";
  const std::string advice =
      recipe_.model.from.empty()
          ? fmt::format("model.text_encoder.max_tokens = {} reads them whole", longest)
          : fmt::format("the longest has {}", longest);
  return fmt::format(
      "stage {}: {} of {} captions are longer than the {} tokens the model reads, and are cut with "
      "their end marks; {}",
      recipe_.stages[stage].name, cut, sizes.size(), config_.caption_tokens, advice);
}

std::vector<std::string> DiffusionFamily::remarks(
    const std::vector<const data::SampleStore*>& sets) const {
  std::vector<std::string> lines;
  for (size_t i = 0; i < sets.size(); ++i) lines.push_back(cut_captions(i, *sets[i]));
  if (recipe_.sample.every_steps > 0) {
    const std::string guidance = guidance_remark(recipe_, recipe_.sample.guidance);
    lines.push_back(guidance.empty() ? "" : "[sample] " + guidance);
  }
  std::erase(lines, "");
  return lines;
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
  const std::string stored = stored_difference(before, record);
  if (!stored.empty())
    throw UsageError(
        "{}: this run was trained on what was encoded otherwise: {}; give the former set as "
        "stage.encoded, or start another run",
        run.string(), stored);
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
