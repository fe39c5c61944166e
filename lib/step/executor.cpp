#include "lib/step/executor.h"

#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "lib/base/error.h"
#include "lib/step/executor_run.h"

namespace mm::step {
namespace {

using Clock = std::chrono::steady_clock;
double ms_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

}  // namespace

Executor::Run::Run(const model::Model& model, const Program& program, Bindings bindings)
    : model_(model),
      program_(program),
      bindings_(std::move(bindings)),
      liveness_(liveness(program)),
      params_(model.params.size()),
      next_params_(program.ahead ? model.params.size() : 0),
      signals_(program.list.size(), 0) {
  need_bindings();
  for (const SegmentRow& row : program.segments) segments_.emplace_back(model, row);
  for (int m = 0; m < program.micro_batches; ++m) flights_.emplace_back(program, bytes_);
  for (int i = 0; i < static_cast<int>(program.list.size()); ++i) {
    const Instruction& instruction = program.list[i];
    const auto queue = static_cast<size_t>(instruction.queue);
    if (queue >= queues_.size()) queues_.resize(queue + 1);
    queues_[queue].push_back(i);
    for (int wait : instruction.waits) signals_[wait] = 1;
  }
  if (program.ahead) {
    for (int m = 0; m < program.micro_batches; ++m)
      next_flights_.emplace_back(program, next_bytes_);
    ahead_thread_ = std::make_unique<QueueThread>([this] { run_queue(kAheadQueue); });
  }
  for (int q = kFirstGroupQueue; q < static_cast<int>(queues_.size()); ++q) {
    threads_.push_back(std::make_unique<QueueThread>([this, q] { run_queue(q); }));
  }
}

void Executor::Run::need_bindings() const {
  MM_CHECK(bindings_.batches != nullptr && bindings_.params != nullptr,
           "no batch source or no parameters are bound");
  MM_CHECK(program_.forward_only || (bindings_.gradients != nullptr && bindings_.hooks != nullptr),
           "a training program needs a gradient sink and update hooks");
  MM_CHECK(program_.groups.size() <= 1, "{} groups, only the data group is built",
           program_.groups.size());
  if (program_.groups.empty()) return;
  MM_CHECK(bindings_.data != nullptr && bindings_.data->size() == program_.groups[0].size,
           "the program is for {} data ranks, the group has {}", program_.groups[0].size,
           bindings_.data == nullptr ? 0 : bindings_.data->size());
  MM_CHECK(program_.buckets.empty() || bindings_.buckets != nullptr, "no buckets are bound");
}

StepReport Executor::Run::run(const StepInput& input) {
  input_ = input;
  if (input.global_targets == 0) input_.divisor = 0;
  if (input.global_targets > 0 && input.divisor == 0) input_.divisor = input.global_targets;
  report_ = {};
  report_.step = input.step;
  report_.global_targets = input.global_targets;
  report_.divisor = input_.divisor;
  report_.sample_losses.resize(program_.micro_batches);
  group_busy_ms_ = 0;
  bytes_ = {};
  losses_.clear();
  done_.assign(program_.list.size(), 0);
  error_ = nullptr;
  stopped_ = false;
  ahead_ms_ = 0;
  const Clock::time_point start = Clock::now();
  if (program_.ahead) take_ahead();
  if (!error_) {
    if (program_.ahead && input.next_follows) ahead_thread_->start();
    for (auto& thread : threads_) thread->start();
    run_queue(kComputeQueue);
    for (auto& thread : threads_) thread->wait();
    if (program_.ahead) ahead_thread_->wait();
  }
  filled_ = program_.ahead && input.next_follows && !error_;
  drop_tensors();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  if (program_.groups.empty()) report_.loss_sum = local_loss();
  report_.ahead_ms = ahead_ms_;
  report_.wall_ms = ms_between(start, Clock::now());
  report_.group_busy_ms = report_.op_ms[static_cast<size_t>(Op::kReduce)] = group_busy_ms_;
  report_.peak_slot_bytes = bytes_.peak;
  return report_;
}

// Brings what the step before made for this one into place, or makes it now.
void Executor::Run::take_ahead() {
  if (!filled_) {
    for (Flight& flight : next_flights_) flight.clear();
    prologue_ = true;
    ahead_thread_->start();
    ahead_thread_->wait();
    prologue_ = false;
    ahead_ms_ = 0;  // nothing ran beside it
  }
  filled_ = false;
  for (size_t m = 0; m < flights_.size(); ++m) flights_[m].swap_contents(next_flights_[m]);
  std::fill(done_.begin(), done_.end(), 0);
}

void Executor::Run::run_queue(int queue) {
  at::NoGradGuard no_grad;  // grad mode is per thread and on in new ones
  const bool compute = queue == kComputeQueue;
  Clock::time_point now = Clock::now();
  for (int index : queues_[queue]) {
    const Instruction& instruction = program_.list[index];
    if (!instruction.waits.empty()) {
      if (!wait_for(instruction)) return;
      const Clock::time_point woken = Clock::now();
      if (compute) report_.exposed_comm_ms += ms_between(now, woken);
      now = woken;
    }
    if (stopped_.load(std::memory_order_relaxed)) return;
    try {
      execute(index);
    } catch (...) {
      fail(index);
      return;
    }
    if (signals_[index]) finish(index);
    const Clock::time_point end = Clock::now();
    if (compute) {
      report_.op_ms[static_cast<size_t>(instruction.op)] += ms_between(now, end);
      report_.compute_busy_ms += ms_between(now, end);
    } else {
      (queue == kAheadQueue ? ahead_ms_ : group_busy_ms_) += ms_between(now, end);
    }
    now = end;
  }
}

// False if the step was stopped meanwhile.
bool Executor::Run::wait_for(const Instruction& instruction) {
  std::unique_lock lock(mutex_);
  for (int wait : instruction.waits) {
    changed_.wait(lock, [&] { return done_[wait] || error_; });
    if (error_) return false;
  }
  return true;
}

void Executor::Run::finish(int index) {
  {
    const std::lock_guard lock(mutex_);
    done_[index] = 1;
  }
  changed_.notify_all();
}

// In a handler: rethrows to tell the kinds apart.
void Executor::Run::fail(int index) {
  try {
    throw;
  } catch (Error& error) {
    error.add_context(context(index));
    stop(std::current_exception());
  } catch (const c10::Error& error) {
    stop(std::make_exception_ptr(
        InternalError("{}: {}", context(index), error.what_without_backtrace())));
  } catch (const std::exception& error) {
    stop(std::make_exception_ptr(InternalError("{}: {}", context(index), error.what())));
  }
}

void Executor::Run::stop(std::exception_ptr error) {
  {
    const std::lock_guard lock(mutex_);
    if (error_) return;
    error_ = std::move(error);
  }
  stopped_ = true;
  changed_.notify_all();
  // Peers may wait for calls that will not come; this frees them, and this rank's group thread.
  if (!program_.groups.empty()) bindings_.data->abort("the step failed on this rank");
}

std::string Executor::Run::context(int index) const {
  const Instruction& i = program_.list[index];
  std::string text = fmt::format("step {}: {}", input_.step, op_name(i.op));
  if (i.block >= 0) text += fmt::format(" of block {}", model_.blocks[i.block].name);
  if (i.bucket == kLossBucket) text += " of the loss";
  if (i.bucket >= 0) text += fmt::format(" of bucket {}", i.bucket);
  if (i.micro_batch >= 0) text += fmt::format(", micro-batch {}", i.micro_batch);
  return text;
}

// After a failure much may be left; after a good step nothing is.
void Executor::Run::drop_tensors() {
  for (Flight& flight : flights_) flight.clear();
  if (!filled_) {
    for (Flight& flight : next_flights_) flight.clear();
  }
  for (JoinedSegment& segment : segments_) {
    segment.drop_tensors();
    params_.drop(segment.row().params);
    if (program_.ahead) next_params_.drop(segment.row().params);
  }
}

Executor::Executor(const model::Model& model, const Program& program, Bindings bindings)
    : run_(std::make_unique<Run>(model, program, std::move(bindings))) {}
Executor::~Executor() = default;
StepReport Executor::run(const StepInput& input) { return run_->run(input); }

}  // namespace mm::step
