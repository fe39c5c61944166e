#pragma once
#include <map>
#include <memory>
#include <vector>

#include "lib/data/loader.h"
#include "lib/data/sample_store.h"
#include "lib/model/llava_config.h"
#include "lib/optim/adamw.h"
#include "lib/optim/flat_grad_sink.h"
#include "lib/optim/param_store.h"
#include "lib/optim/schedule.h"
#include "lib/run/comm.h"
#include "lib/run/recipe.h"
#include "lib/state/state_tensor.h"
#include "lib/step/executor.h"
#include "lib/step/program.h"

namespace mm::run {

/// What a stage is run with on this rank. Nothing is owned.
struct StageInputs {
  const Recipe& recipe;
  size_t index;  ///< of the stage
  const model::LlavaConfig& config;
  optim::ParamStore& params;
  const data::SampleStore& store;
  Comm& comm;
  int64_t start_step = 0;  ///< within the stage
};

/// One step as this rank saw it; the sums over ranks are in `report` (loss) and `plan` (sizes).
struct StageStep {
  step::StepReport report;
  data::PlannedStep plan;
  std::vector<uint64_t> samples;  ///< ids of this rank, in order
  std::vector<data::BadRead> bad;
  double wait_ms = 0;  ///< for data
  std::map<std::string, double> lr;
};

/// A stage on one rank: loader, gradient sink, optimizer and the step programs (one per number of
/// micro-batches), all made for what the stage trains. Construct on all ranks: the programs' hashes
/// are compared. Main thread only.
class StageRun {
 public:
  explicit StageRun(const StageInputs& inputs);
  ~StageRun();
  StageRun(const StageRun&) = delete;

  /// The next step, over all ranks. `global_step` is for messages.
  StageStep run_step(int64_t global_step);

  int64_t next_step() const { return next_step_; }
  bool done() const { return next_step_ >= inputs_.recipe.stages[inputs_.index].steps; }
  optim::AdamW& optimizer() { return optimizer_; }
  /// Moments of trained parameters under their names on disk.
  std::vector<state::StateTensor> moments() const;

 private:
  struct Hooks;
  struct Batches;
  struct Runner;
  Runner& runner(int micro_batches);

  StageInputs inputs_;
  optim::FlatGradSink sink_;
  optim::AdamW optimizer_;
  data::Loader loader_;
  std::map<std::string, optim::Schedule> schedules_;
  std::unique_ptr<Hooks> hooks_;
  std::unique_ptr<Batches> batches_;
  std::map<int, std::unique_ptr<Runner>> runners_;
  int64_t next_step_;
};

}  // namespace mm::run
