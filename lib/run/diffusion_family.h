#pragma once
#include "lib/model/diffusion_config.h"
#include "lib/model/objective.h"
#include "lib/run/batch_tensors.h"
#include "lib/run/diffusion_inputs.h"
#include "lib/run/model_family.h"

namespace mm::run {

class GridDrawing;

/// DiT, PixArt and MMDiT on pictures in buckets.
class DiffusionFamily final : public ModelFamily {
 public:
  /// Throws as DiffusionInputs, configure_diffusion, objective_of and HeldOutLoss do, and
  /// UsageError for prompts, labels or a size of [sample] that the model does not take.
  DiffusionFamily(const Recipe& recipe, const std::vector<data::DatasetManifest>& sets);
  ~DiffusionFamily() override;

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
  /// Captions that are cut; grids whose guidance has nothing to guide away from.
  std::vector<std::string> remarks(
      const std::vector<const data::SampleStore*>& sets) const override;
  void check_directory(const std::filesystem::path& run) const override;
  /// RUN/encoders.json; with a text encoder of its own RUN/hf, the tokenizer.
  void write_side_files(const std::filesystem::path& run,
                        const data::DatasetManifest& set) const override;
  void load_frozen(size_t stage) const override { inputs_.online(stage); }
  std::unique_ptr<data::SampleStore> stage_store(size_t stage,
                                                 const data::SampleStore& set) const override;
  double encoding_bytes(size_t stage, const data::Pack& pack) const override;
  double frozen_elements() const override { return inputs_.online_elements(); }
  std::vector<image::Image> draw_row(int64_t row, const model::ParamView& params) const override;
  bool every_rank_draws() const override { return inputs_.online_models_draw(); }
  const HeldOutLoss* held_out() const override { return held_out_.get(); }
  /// Encoded sets, and [validation]'s.
  std::vector<OpenedData> opened() const override;

 private:
  std::string cut_captions(size_t stage, const data::SampleStore& set) const;
  /// Pixels along a side of what the model sees one of.
  int64_t factor() const { return inputs_.shape().factor; }

  const Recipe& recipe_;
  const DiffusionInputs inputs_;
  const model::DiffusionConfig config_;
  const model::Objective objective_;
  const PixelNorm norm_;
  const std::vector<EncoderDrop> encoder_drop_;
  std::unique_ptr<const GridDrawing> grid_;      ///< of [sample], null without
  std::unique_ptr<const HeldOutLoss> held_out_;  ///< of [validation], null without
};

}  // namespace mm::run
