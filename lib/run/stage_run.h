#pragma once
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "lib/data/loader.h"
#include "lib/data/sample_store.h"
#include "lib/optim/ema.h"
#include "lib/optim/flat_grad_sink.h"
#include "lib/optim/loss_scaler.h"
#include "lib/optim/optimizer.h"
#include "lib/optim/param_store.h"
#include "lib/optim/schedule.h"
#include "lib/run/activation_watch.h"
#include "lib/run/comm.h"
#include "lib/run/loss_weights.h"
#include "lib/run/model_family.h"
#include "lib/run/recipe.h"
#include "lib/state/state_tensor.h"
#include "lib/step/executor.h"
#include "lib/step/program.h"

namespace mm::run {

/// What a stage is run with on this rank. Nothing is owned.
struct StageInputs {
  const Recipe& recipe;
  size_t index;  ///< of the stage
  const ModelFamily& family;
  optim::ParamStore& params;
  const data::SampleStore& store;
  Comm& comm;
  int64_t start_step = 0;         ///< within the stage
  optim::Ema* average = nullptr;  ///< follows every update
};

/// One step as this rank saw it; the sums over ranks are in `report` (loss) and `plan` (sizes).
struct StageStep {
  step::StepReport report;
  data::PlannedStep plan;
  std::vector<uint64_t> samples;  ///< ids of this rank, in order
  std::vector<data::BadRead> bad;
  double wait_ms = 0;     ///< for data
  model::Sizes pictures;  ///< of this rank: picture_sizes()
  /// Of `samples`, in their order: sum of the losses of a sample's targets, and how many it has
  /// (0 and 0 for one that could not be read).
  std::vector<double> sample_losses;
  std::vector<int64_t> sample_targets;
  std::map<std::string, double> lr;
  std::string skip_reason;  ///< why nothing was updated: "no_targets", "overflow"; empty: it was
};

/// A stage on one rank: loader, gradient sink, optimizer and the step programs (one per number of
/// micro-batches), all made for what the stage trains. Construct on all ranks: the programs' hashes
/// are compared. Main thread only.
class StageRun {
 public:
  explicit StageRun(const StageInputs& inputs);
  ~StageRun();
  StageRun(const StageRun&) = delete;

  /// The next step, over all ranks. `global_step` is for messages. Throws NumericalError, on all
  /// ranks, for a gradient norm that is not finite; in fp16 once the loss scale is at its smallest.
  StageStep run_step(int64_t global_step);

  int64_t next_step() const { return next_step_; }
  bool done() const { return next_step_ >= inputs_.recipe.stages[inputs_.index].steps; }
  optim::Optimizer& optimizer() { return *optimizer_; }
  /// Null unless some part counts in fp16.
  optim::LossScaler* loss_scaler() { return scaler_ ? &*scaler_ : nullptr; }
  /// Forward and backward of the costliest pack of the epoch, on every rank, without an update: out
  /// of memory shows before the first step. Collective.
  void rehearse();
  /// What looks at the values between blocks while steps run.
  ActivationWatch& activations() { return activations_; }
  /// Moments of trained parameters under their names on disk.
  std::vector<state::StateTensor> moments() const;

 private:
  struct Hooks;
  struct Batches;
  struct Runner;
  Runner& runner(int micro_batches);
  data::LoaderStep next_of_loader();
  /// A skipped update does not move the schedule.
  double rate(const optim::Schedule& schedule) const {
    return schedule.at(optimizer_->update_count());
  }

  StageInputs inputs_;
  optim::FlatGradSink sink_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::optional<optim::LossScaler> scaler_;
  data::Loader loader_;
  LossWeights loss_weights_;
  std::map<std::string, optim::Schedule> schedules_;
  ActivationWatch activations_;
  std::unique_ptr<Hooks> hooks_;
  std::unique_ptr<Batches> batches_;
  std::map<int, std::unique_ptr<Runner>> runners_;
  int64_t next_step_;
  bool rehearsing_ = false;
};

}  // namespace mm::run
