#include "lib/run/llava_family.h"

#include <algorithm>

#include "lib/model/adapter_dropout.h"
#include "lib/run/hf_side_files.h"
#include "lib/run/model_setup.h"
#include "lib/run/start_weights.h"

namespace mm::run {

LlavaFamily::LlavaFamily(const Recipe& recipe, const std::vector<data::DatasetManifest>& sets)
    : recipe_(recipe),
      config_(configure_model(recipe, sets)),
      norm_(pixel_norm(recipe.model.normalise.mean, recipe.model.normalise.std)) {}

model::Model LlavaFamily::build() const { return build_model(recipe_, config_); }

PackFootprint LlavaFamily::footprint(const data::Pack& pack) const {
  PackFootprint result;
  result.sizes = {.tokens = pack.tokens,
                  .samples = static_cast<int64_t>(pack.samples.size()),
                  .images = pack.images,
                  .patches = config_.patches_per_image(),
                  .targets = pack.targets,
                  .attention_pairs = pack.attention_pairs};
  const auto of = [&](model::Part part, int64_t rows, int64_t width) {
    result.block_input[static_cast<size_t>(part)] = static_cast<double>(rows * width);
  };
  const int64_t patches = config_.patches_per_image();
  const model::VisionConfig& vision = config_.vision;
  // The plan does not know the sizes of pictures that have their own: all that is no target may be
  // a picture's.
  if (config_.family == model::Family::kQwen25Vl && pack.images > 0)
    result.sizes.patch_rows = (pack.tokens - pack.targets) * vision.merge * vision.merge;
  const int64_t tower_rows = pack.images * (patches + 1) + result.sizes.patch_rows;
  of(model::Part::kVision, tower_rows, vision.hidden);
  of(model::Part::kProjector, pack.tokens, config_.text.hidden);
  of(model::Part::kLanguage, pack.tokens, config_.text.hidden);
  result.logits = static_cast<double>(pack.targets * config_.text.vocab);
  const auto side = static_cast<double>(vision.image_size);
  result.pictures = static_cast<double>(pack.images) * 3 * side * side +
                    static_cast<double>(result.sizes.patch_rows) * 3 *
                        static_cast<double>(vision.patch_size * vision.patch_size);
  return result;
}

model::Sizes LlavaFamily::picture_sizes(const data::MicroBatch& micro_batch) const {
  return run::picture_sizes(micro_batch, config_);
}

model::Batch LlavaFamily::to_batch(const data::MicroBatch& micro_batch,
                                   const BatchOptions& options) const {
  model::Batch batch = run::to_batch(micro_batch, config_,
                                     options.precision.compute_of(model::Part::kVision), norm_);
  if (recipe_.lora.on() && recipe_.lora.dropout > 0)
    batch.row_draws = std::make_shared<model::RowDraws>(
        model::row_draws(batch, micro_batch.sample_ids, recipe_.seed, options.epoch));
  return batch;
}

void LlavaFamily::load_published(optim::ParamStore& params) const {
  load_llava_weights(recipe_, config_, params);
}

void LlavaFamily::load_adapters(optim::ParamStore& params) const {
  load_llava_adapters(recipe_, config_, params);
}

void LlavaFamily::write_side_files(const std::filesystem::path& run,
                                   const data::DatasetManifest& set) const {
  write_hf_side_files(run, recipe_, config_, set);
}

int32_t LlavaFamily::drop_token() const {
  return static_cast<int32_t>(std::max<int64_t>(0, config_.text.bos_token));
}

}  // namespace mm::run
