#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <functional>

#include "lib/dist/group.h"
#include "lib/model/batch.h"
#include "lib/model/block.h"

namespace mm::step {

/// Where a load instruction takes its micro-batch. Called on the compute thread, in ascending
/// order, once per micro-batch; may block until the loader has it: that time is the step's data
/// wait.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual model::Batch load(int micro_batch) = 0;
  /// The same of the step that follows the one that runs; only for programs that work ahead, then
  /// called on the ahead queue's thread, beside what else the step does. The first step's are asked
  /// for by `load`, on that thread too.
  virtual model::Batch load_next(int micro_batch) { return load(micro_batch); }
};

/// The flat gradient buffers behind the GradSink.
class ReduceTarget {
 public:
  virtual ~ReduceTarget() = default;
  /// Contiguous [elements] of row `index` of Program::buckets. Called from the group's thread while
  /// gradients of other buckets arrive on the compute thread.
  virtual at::Tensor bucket(int index) = 0;
};

/// What a step was asked to do.
struct StepInput {
  int64_t step = 0;           ///< global step, for messages
  double global_targets = 0;  ///< N: targets of all micro-batches of all ranks, from the plan
  /// What the sum of weighted losses is divided by, the same on all ranks; 0: global_targets.
  double divisor = 0;
  /// The backward's seed is loss_scale / divisor; who scales divides the gradients before `norm`.
  double loss_scale = 1;
  /// Programs that work ahead: the next run of this executor is the step that load_next gives.
  bool next_follows = false;
};

/// Norms of the reduced gradients, each element counted once.
struct GradNorm {
  double total = 0;
  std::array<double, model::kPartCount> parts{};  ///< by model::Part; frozen: 0
};

/// What follows the reductions. Called on the compute thread without autograd.
class UpdateHooks {
 public:
  virtual ~UpdateHooks() = default;
  virtual GradNorm norm() = 0;
  /// Scales the gradients by min(1, limit / norm).
  virtual void clip(double norm) = 0;
  /// Applies the optimizer; `norm` is the total. With global_targets == 0 it must change nothing
  /// (weights, moments, step count) and say so. Returns whether it updated.
  virtual bool update(const StepInput& input, double norm) = 0;
};

/// What an executor works on. Nothing is owned; all must outlive it. A forward-only program needs
/// `batches` and `params` alone.
struct Bindings {
  BatchSource* batches = nullptr;
  const model::ParamView* params = nullptr;
  model::GradSink* gradients = nullptr;  ///< its buffers are zero when a step starts
  ReduceTarget* buckets = nullptr;       ///< with more than one data rank
  UpdateHooks* hooks = nullptr;
  dist::Group* data =
      nullptr;  ///< with more than one data rank; while a step runs, only the executor uses it
  /// Called after a forward with each value it leaves, from the thread that ran it.
  std::function<void(model::Slot, const at::Tensor&)> on_value;
  /// Evaluation: called after the forward that yields a loss with the micro-batch, its loss and,
  /// where it asked for them, logits.
  std::function<void(int micro_batch, const model::Batch&, const at::Tensor& loss,
                     const at::Tensor& logits)>
      on_loss;
};

}  // namespace mm::step
