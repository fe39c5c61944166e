#pragma once
#include <memory>

#include "lib/model/block.h"
#include "lib/step/bindings.h"
#include "lib/step/program.h"
#include "lib/step/report.h"

namespace mm::step {

/// Runs a program on this rank, step after step: the compute queue on the calling thread, each
/// group's queue on a thread of its own that lives as long as the executor. Per instruction it
/// allocates nothing of its own and builds no strings.
class Executor {
 public:
  /// `model`, `program` and what `bindings` names must outlive it. Throws InternalError if a
  /// binding is missing that the program needs, or the data group has another size. It trusts the
  /// list: `check` it first.
  Executor(const model::Model& model, const Program& program, Bindings bindings);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Runs the list once. The loss is seeded with loss_scale / divisor; without targets with 0,
  /// and the update is left to the hook. If any queue fails, all stop, the data group is aborted so
  /// that no rank waits for this one, and the first error is thrown here with step, operation,
  /// block and micro-batch in front, after the group's thread has come back. An mm::Error keeps its
  /// exit code; others become InternalError. All tensors of the step are dropped then; gradients
  /// are left half added.
  StepReport run(const StepInput& input);

 private:
  class Run;
  std::unique_ptr<Run> run_;
};

}  // namespace mm::step
