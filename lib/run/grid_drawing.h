#pragma once
#include <mutex>
#include <vector>

#include "lib/run/diffusion_inputs.h"
#include "lib/run/trained_diffusion.h"

namespace mm::run {

/// [sample] of a run in training: the grid that `mmtrain sample` would draw of a checkpoint. Const
/// members may be called from any thread.
class GridDrawing {
 public:
  /// `set`: of the last stage. Throws UsageError for prompts of a model of classes and the reverse,
  /// and for a size the model cannot draw. Both references must outlive it.
  GridDrawing(const Recipe& recipe, const data::DatasetManifest& set,
              const model::DiffusionConfig& config, const DiffusionInputs& inputs);

  /// The pictures of one row, by weights in any dtype (fp32 ones are not copied). Picture i of the
  /// grid is a function of (sample.seed, i), its condition and the weights. Loads the recipe's
  /// encoders at the first call.
  std::vector<image::Image> row(int64_t number, const model::ParamView& params) const;

 private:
  data::BucketShape size() const;

  const Recipe& recipe_;
  const DiffusionInputs& inputs_;
  mutable std::once_flag loaded_;
  mutable TrainedDiffusion drawn_;     ///< its encoders come with the first row
  std::vector<Condition> conditions_;  ///< in turn
};

}  // namespace mm::run
