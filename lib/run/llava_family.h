#pragma once
#include "lib/model/llava_config.h"
#include "lib/run/batch_tensors.h"
#include "lib/run/model_family.h"

namespace mm::run {

/// LLaVA, LLaVA-NeXT, OneVision and Qwen2.5-VL.
class LlavaFamily final : public ModelFamily {
 public:
  /// Throws as configure_model does.
  LlavaFamily(const Recipe& recipe, const std::vector<data::DatasetManifest>& sets);

  model::Model build() const override;
  Json config() const override { return model::to_json(config_); }
  PackFootprint footprint(const data::Pack& pack) const override;
  model::Sizes picture_sizes(const data::MicroBatch& micro_batch) const override;
  int64_t patches_per_image() const override { return config_.patches_per_image(); }
  model::Batch to_batch(const data::MicroBatch& micro_batch,
                        const BatchOptions& options) const override;
  void load_published(optim::ParamStore& params) const override;
  void load_adapters(optim::ParamStore& params) const override;
  void write_side_files(const std::filesystem::path& run,
                        const data::DatasetManifest& set) const override;
  int32_t drop_token() const override;

 private:
  const Recipe& recipe_;
  const model::LlavaConfig config_;
  const PixelNorm norm_;
};

}  // namespace mm::run
