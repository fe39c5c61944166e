#pragma once
#include "lib/model/vae_config.h"
#include "lib/model/vae_training.h"
#include "lib/run/batch_tensors.h"
#include "lib/run/model_family.h"

namespace mm::run {

/// An autoencoder (AutoencoderKL) on pictures in buckets: reconstruction and KL
/// (lib/model/vae_training.h). Captions and classes of the sets are not read.
class VaeFamily final : public ModelFamily {
 public:
  /// Throws UsageError naming the data set for one without buckets, or with sides that the
  /// autoencoder's factor does not divide.
  VaeFamily(const Recipe& recipe, const std::vector<data::DatasetManifest>& sets);

  model::Model build() const override;
  /// diffusers' config.json.
  Json config() const override { return model::to_json(config_); }
  PackFootprint footprint(const data::Pack& pack) const override;
  model::Sizes picture_sizes(const data::MicroBatch& micro_batch) const override;
  int64_t patches_per_image() const override { return 0; }
  /// The draw of a picture's latents is a function of (seed, epoch, sample id).
  model::Batch to_batch(const data::MicroBatch& micro_batch,
                        const BatchOptions& options) const override;
  void load_published(optim::ParamStore& params) const override;

 private:
  model::Sizes sizes_of(int64_t pictures, int64_t height, int64_t width) const;

  const Recipe& recipe_;
  const model::VaeConfig config_;
  const PixelNorm norm_;
};

}  // namespace mm::run
