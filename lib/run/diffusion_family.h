#pragma once
#include "lib/model/diffusion_config.h"
#include "lib/model/objective.h"
#include "lib/run/batch_tensors.h"
#include "lib/run/encoded_set.h"
#include "lib/run/model_family.h"

namespace mm::run {

/// DiT, PixArt and MMDiT on pictures in buckets.
class DiffusionFamily final : public ModelFamily {
 public:
  /// Opens the stages' encoded sets. Throws as configure_diffusion, objective_of and
  /// EncodedSet::open do, and DataError where stages' encoders differ.
  DiffusionFamily(const Recipe& recipe, const std::vector<data::DatasetManifest>& sets);

  model::Model build() const override;
  /// diffusers' config.json.
  Json config() const override;
  PackFootprint footprint(const data::Pack& pack) const override;
  model::Sizes picture_sizes(const data::MicroBatch& micro_batch) const override;
  int64_t patches_per_image() const override { return 0; }
  model::Batch to_batch(const data::MicroBatch& micro_batch,
                        const BatchOptions& options) const override;
  std::optional<double> divisor(const data::PlannedStep& step) const override;
  void load_published(optim::ParamStore& params) const override;

 private:
  int64_t factor() const;

  const Recipe& recipe_;
  /// One a stage, null where it has none; with the data sets they are checked against.
  const std::vector<std::unique_ptr<EncodedSet>> encoded_;
  const model::DiffusionConfig config_;
  const model::Objective objective_;
  const PixelNorm norm_;
};

}  // namespace mm::run
