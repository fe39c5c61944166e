#pragma once
#include <memory>
#include <string>
#include <vector>

#include "lib/step/executor.h"
#include "tools/bench_llava/training_state.h"

namespace mm::bench {

/// A step of one batch as lib/step's program, where blocks (or decoder layers' attention and mlp)
/// are run again in the backward instead of being kept.
class ProgramStep {
 public:
  /// `kind`: "block", or "selective" for the mlp of decoder layers. `batch` and `state` must
  /// outlive it.
  ProgramStep(const model::Model& model, const std::vector<bool>& trainable,
              const model::Batch& batch, TrainingState& state, const std::string& kind);
  ~ProgramStep();
  /// Forward, backward and, if the state has one, the optimizer. Gradients are zero before.
  void run();

 private:
  class Hooks;
  const double targets_;
  std::unique_ptr<Hooks> hooks_;
  step::Program program_;
  std::unique_ptr<step::Executor> executor_;
};

}  // namespace mm::bench
