#pragma once
#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lib/step/executor.h"
#include "lib/step/flight.h"
#include "lib/step/joined_segment.h"
#include "lib/step/liveness.h"
#include "lib/step/queue_thread.h"

namespace mm::step {

/// What an executor keeps between and during steps. Queues, waits and errors are in executor.cpp,
/// what each operation does in executor_ops.cpp.
class Executor::Run {
 public:
  Run(const model::Model& model, const Program& program, Bindings bindings);
  StepReport run(const StepInput& input);

 private:
  void need_bindings() const;
  void run_queue(int queue);
  bool wait_for(const Instruction& instruction);
  void finish(int index);
  void execute(int index);
  void load(const Instruction& instruction);
  void forward(int index);
  void recompute(int index);
  void free_after(int index);
  Flight& flight_of(const Instruction& instruction);
  DeclaredParams& params_of(const Instruction& instruction);
  void take_ahead();
  void backward(const Instruction& instruction);
  void reduce(const Instruction& instruction);
  void norm();
  void note_sample_losses(int micro_batch);
  double local_loss() const;
  void fail(int index);
  void stop(std::exception_ptr error);
  std::string context(int index) const;
  void drop_tensors();

  const model::Model& model_;
  const Program& program_;
  Bindings bindings_;
  Liveness liveness_;
  std::vector<JoinedSegment> segments_;
  DeclaredParams params_;
  SlotBytes bytes_;
  std::vector<Flight> flights_;  // [micro_batches]
  SlotBytes next_bytes_;
  std::vector<Flight> next_flights_;      // [micro_batches] of the step that follows, or none
  DeclaredParams next_params_;            // of the ahead queue's thread
  bool filled_ = false;                   // next_flights_ hold the step that is to run
  bool prologue_ = false;                 // the ahead queue works for the step that is to run
  std::vector<std::vector<int>> queues_;  // [queues] instruction indices
  std::vector<uint8_t> signals_;          // [instructions] another queue waits for it

  StepInput input_;
  StepReport report_;
  std::vector<at::Tensor> losses_;  // of the micro-batches, in order
  double ahead_ms_ = 0;             // written by the ahead queue's thread
  double group_busy_ms_ = 0;        // written by the group's thread, read after it came back

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<uint8_t> done_;  // [instructions] with signals_, under mutex_
  std::exception_ptr error_;   // the first, under mutex_
  std::atomic<bool> stopped_ = false;
  // Last: they end first.
  std::unique_ptr<QueueThread> ahead_thread_;          // of programs that work ahead
  std::vector<std::unique_ptr<QueueThread>> threads_;  // of the groups
};

}  // namespace mm::step
