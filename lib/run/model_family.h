#pragma once
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "lib/base/json.h"
#include "lib/data/dataset_manifest.h"
#include "lib/data/epoch_plan.h"
#include "lib/data/micro_batch.h"
#include "lib/data/plan_cursor.h"
#include "lib/data/sample_store.h"
#include "lib/image/image.h"
#include "lib/model/batch.h"
#include "lib/model/block.h"
#include "lib/optim/param_store.h"
#include "lib/run/data_access.h"
#include "lib/run/recipe.h"

namespace mm::run {

class HeldOutLoss;

/// What a pack makes a rank hold beside what the blocks' cost functions count; elements.
struct PackFootprint {
  model::Sizes sizes;
  std::array<double, model::kPartCount> block_input{};  ///< of one block of each model::Part
  double logits = 0;                                    ///< [targets, vocab]
  double pictures = 0;                                  ///< pixel values as the model takes them
};

/// How a micro-batch becomes tensors.
struct BatchOptions {
  const optim::Precision& precision;
  size_t stage = 0;
  uint64_t epoch = 0;  ///< random draws of a sample are keyed by it
};

/// What trainer and check ask of a family of models; all else about a run is the same for each.
/// Made for one recipe and its data sets, unchanging; calls are thread-safe.
class ModelFamily {
 public:
  virtual ~ModelFamily() = default;
  /// Blocks, slots and parameters, with the recipe's initial spread and adapters.
  virtual model::Model build() const = 0;
  /// The model's configuration, for a checkpoint's state.
  virtual Json config() const = 0;
  /// What a pack will take, from the plan alone.
  virtual PackFootprint footprint(const data::Pack& pack) const = 0;
  /// What a micro-batch's pictures cost that the plan does not know (Sizes of pictures that have a
  /// size of their own).
  virtual model::Sizes picture_sizes(const data::MicroBatch& micro_batch) const = 0;
  /// Of pictures of one size: placeholders or patches each; else 0.
  virtual int64_t patches_per_image() const = 0;
  virtual model::Batch to_batch(const data::MicroBatch& micro_batch,
                                const BatchOptions& options) const = 0;
  /// What a step's sum of losses is divided by; nothing: as [loss] says.
  virtual std::optional<double> divisor(const data::PlannedStep& /*step*/) const { return {}; }
  /// Copies the weights of model.from over drawn ones.
  virtual void load_published(optim::ParamStore& params) const = 0;
  /// Those of lora.from; for families with adapters.
  virtual void load_adapters(optim::ParamStore& params) const;
  /// What the recipe does with these data sets, one a stage, that its user may not expect: a line
  /// each, said once before the first step and by `mmtrain check`. O(rows).
  virtual std::vector<std::string> remarks(
      const std::vector<const data::SampleStore*>& /*sets*/) const {
    return {};
  }
  /// Throws UsageError if RUN was trained beside other frozen models; changes nothing in it.
  virtual void check_directory(const std::filesystem::path& /*run*/) const {}
  /// RUN/hf: what an exported model needs beside weights and config.json. `set` is the last data
  /// set with pictures.
  virtual void write_side_files(const std::filesystem::path& /*run*/,
                                const data::DatasetManifest& /*set*/) const {}
  /// Loads the frozen models that a stage's batches are made with, if any: as long as reading their
  /// weights takes. Else the first batch does.
  virtual void load_frozen(size_t /*stage*/) const {}
  /// How a stage reads its data set where that has not, or need not give, everything; null: as it
  /// is. `set` must outlive it.
  virtual std::unique_ptr<data::SampleStore> stage_store(size_t /*stage*/,
                                                         const data::SampleStore& /*set*/) const {
    return nullptr;
  }
  /// Bytes that making a batch of the pack takes at its fullest beside the frozen models' weights.
  virtual double encoding_bytes(size_t /*stage*/, const data::Pack& /*pack*/) const { return 0; }
  /// Numbers of frozen models beside the blocks, in fp32: encoders that make a batch's tensors.
  virtual double frozen_elements() const { return 0; }
  /// One row of [sample]'s grid, by weights in training. A function of recipe and weights alone,
  /// without a draw from any generator. For families that draw.
  virtual std::vector<image::Image> draw_row(int64_t row, const model::ParamView& params) const;
  /// Whether draw_row takes no models on any rank that training does not load, only copies of the
  /// weights (MemoryEstimate::drawing); else rank 0 alone draws.
  virtual bool every_rank_draws() const { return true; }
  /// [validation] of a diffusion model; null where there is none.
  virtual const HeldOutLoss* held_out() const { return nullptr; }
  /// Data that it opened beside the stages' sets, which all ranks must have alike.
  virtual std::vector<OpenedData> opened() const { return {}; }
  /// What token_drop of [augment] puts in a token's place.
  virtual int32_t drop_token() const { return 0; }
};

/// The family that model.family names. Throws UsageError when recipe, data sets and model do not
/// agree. `recipe` must outlive it.
std::unique_ptr<ModelFamily> make_family(const Recipe& recipe,
                                         const std::vector<data::DatasetManifest>& sets);

}  // namespace mm::run
