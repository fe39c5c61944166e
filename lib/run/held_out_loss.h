#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

#include "lib/run/comm.h"
#include "lib/run/data_access.h"
#include "lib/run/diffusion_inputs.h"
#include "lib/run/validation_loss.h"

namespace mm::run {

/// [validation] of a run in training: the loss that `mmtrain eval` would give of a checkpoint on
/// the held-out set. Const members may be called from any thread.
class HeldOutLoss {
 public:
  /// `set`: of the last stage. Opens the held-out set. Throws as validation_loss and EncodedSet do.
  /// All references must outlive it.
  HeldOutLoss(const Recipe& recipe, const data::DatasetManifest& set,
              const model::DiffusionConfig& config, const DiffusionInputs& inputs);

  /// Whether measuring takes no models on any rank that training does not load.
  bool every_rank_measures() const;
  /// Of the held-out set's batches `first`, `first + stride` and so on, by weights in any dtype.
  /// Loads the recipe's encoders at the first call, if it takes them.
  std::vector<HeldOut::Sums> measure(int64_t first, int64_t stride, const model::ParamView& params,
                                     const std::stop_token& stop) const;
  /// The held-out set and its encoded set, if any.
  std::vector<OpenedData> opened() const;
  int64_t batches() const { return held_out_->batches(); }
  ValidationLoss mean_of(const std::vector<HeldOut::Sums>& sums) const {
    return held_out_->mean_of(sums);
  }

 private:
  bool encodes() const;  ///< pictures or captions of the held-out set, on the way

  const DiffusionInputs& inputs_;
  mutable std::once_flag loaded_;
  mutable TrainedDiffusion measured_;  ///< its encoders come with the first measurement
  std::unique_ptr<data::Dataset> set_;
  std::unique_ptr<EncodedSet> encoded_;  ///< null without
  std::unique_ptr<const HeldOut> held_out_;
};

/// The loss by weights in training, the same bits for any number of ranks; on rank 0, nothing on
/// the others. Collective over comm.control; ranks take the batches in turn, or rank 0 takes all
/// where measuring takes models that the others do not load. No rank waits for another's work
/// (patient_work.h).
std::optional<ValidationLoss> measure_held_out(const HeldOutLoss& held_out,
                                               const model::ParamView& params, Comm& comm,
                                               double timeout_s);

}  // namespace mm::run
