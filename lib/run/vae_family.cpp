#include "lib/run/vae_family.h"

#include <ATen/ATen.h>

#include "lib/base/error.h"
#include "lib/model/diffusion_input.h"
#include "lib/model/objective_draw.h"
#include "lib/model/vae_load.h"

namespace mm::run {
namespace {

model::VaeConfig config_of(const Recipe& recipe) {
  if (!recipe.model.from.empty()) return model::read_vae_config(recipe.model.from / "config.json");
  const ModelRecipe::Autoencoder& a = recipe.model.autoencoder;
  return {.latent_channels = a.latent_channels,
          .channels = a.channels,
          .layers_per_block = a.layers,
          .groups = a.groups,
          .scale = a.scaling_factor};
}

model::VaeLoss loss_of(const ReconstructionRecipe& recipe) {
  using Error = model::VaeLoss::Error;
  return {.error = recipe.error == "squared" ? Error::kSquared : Error::kAbsolute,
          .kl_weight = recipe.kl_weight};
}

void check_set(const std::string& data, const data::DatasetManifest& set, int64_t factor) {
  if (set.pictures.buckets.empty())
    throw UsageError(
        "{}: not a bucketed set, and an autoencoder learns pictures by buckets; pack it with "
        "mmshard pack --geometry buckets",
        data);
  for (const data::BucketShape& bucket : set.pictures.buckets) {
    if (bucket.height % factor != 0 || bucket.width % factor != 0)
      throw UsageError(
          "{}: has pictures of {}x{} pixels, sides must be multiples of the autoencoder's factor, "
          "{}",
          data, bucket.width, bucket.height, factor);
  }
}

}  // namespace

VaeFamily::VaeFamily(const Recipe& recipe, const std::vector<data::DatasetManifest>& sets)
    : recipe_(recipe),
      config_(config_of(recipe)),
      norm_(pixel_norm(recipe.model.normalise.mean, recipe.model.normalise.std)) {
  for (size_t i = 0; i < sets.size(); ++i)
    check_set(recipe.stages[i].data.string(), sets[i], config_.factor());
}

model::Model VaeFamily::build() const {
  return model::build_vae(config_, loss_of(recipe_.reconstruction));
}

/// A patch of the cost functions is a pixel.
model::Sizes VaeFamily::sizes_of(int64_t pictures, int64_t height, int64_t width) const {
  const int64_t pixels = height * width;
  return {.samples = pictures,
          .images = pictures,
          .patches = pixels,
          .targets = pictures,
          .patch_rows = pictures * pixels};
}

PackFootprint VaeFamily::footprint(const data::Pack& pack) const {
  PackFootprint result;
  result.sizes = sizes_of(pack.pictures(), pack.bucket.height, pack.bucket.width);
  result.block_input[static_cast<size_t>(model::Part::kVae)] =
      static_cast<double>(pack.pixels() * config_.channels.front());
  result.pictures = static_cast<double>(pack.pixels() * config_.in_channels);
  return result;
}

model::Sizes VaeFamily::picture_sizes(const data::MicroBatch& mb) const {
  return {.patch_rows = sizes_of(mb.images, mb.height, mb.width).patch_rows};
}

model::Batch VaeFamily::to_batch(const data::MicroBatch& mb, const BatchOptions& options) const {
  const at::ScalarType dtype = options.precision.master;
  auto input = std::make_shared<model::DiffusionInput>();
  const int64_t factor = config_.factor();
  // Convolutions refuse pictures without sides, even none of them.
  input->clean = mb.images > 0 ? same_sized_pixels(mb, dtype, norm_)
                               : at::zeros({0, config_.in_channels, 8 * factor, 8 * factor}, dtype);
  input->noise = at::zeros({mb.images, config_.latent_channels, input->clean.size(2) / factor,
                            input->clean.size(3) / factor},
                           dtype);
  for (int64_t i = 0; i < mb.images; ++i)
    model::fill_normal(input->noise[i],
                       model::sample_stream(recipe_.seed, "latent_noise", options.epoch,
                                            mb.sample_ids[static_cast<size_t>(i)]));
  if (!mb.weights.empty()) input->weights = at::tensor(mb.weights, at::kFloat).to(dtype);
  model::Batch batch;
  batch.tokens = ids_tensor(mb.tokens);
  batch.cu_seqlens.assign(mb.cu_seqlens.begin(), mb.cu_seqlens.end());
  if (batch.cu_seqlens.empty()) batch.cu_seqlens = {0};
  batch.sizes = sizes_of(mb.images, mb.height, mb.width);
  batch.sizes.targets = mb.target_count;
  batch.diffusion = std::move(input);
  return batch;
}

void VaeFamily::load_published(optim::ParamStore& params) const {
  const model::LoadedVae loaded = model::load_vae(recipe_.model.from);
  for (size_t i = 0; i < loaded.values.size(); ++i)
    params.set(static_cast<model::ParamId>(i), loaded.values[i]);
}

}  // namespace mm::run
