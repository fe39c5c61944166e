#include "lib/step/executor.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <vector>

#include "lib/base/error.h"
#include "lib/step/joined_segment.h"
#include "lib/step/liveness.h"
#include "lib/step/queue_thread.h"

namespace mm::step {
namespace {

using Clock = std::chrono::steady_clock;
double ms_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

// The leaves of the segment that runs; a parameter that it did not declare would get no gradient,
// so it is refused.
class DeclaredParams final : public model::ParamView {
 public:
  explicit DeclaredParams(size_t params) : leaves_(params) {}
  void take(const model::ParamView& source, const std::vector<model::ParamId>& ids) {
    for (model::ParamId id : ids) leaves_[static_cast<size_t>(id)] = source.get(id);
  }
  void drop(const std::vector<model::ParamId>& ids) {
    for (model::ParamId id : ids) leaves_[static_cast<size_t>(id)].reset();
  }
  at::Tensor get(model::ParamId id) const override {
    const at::Tensor& leaf = leaves_.at(static_cast<size_t>(id));
    MM_CHECK(leaf.defined(), "a segment reads parameter {}, which it does not declare", id);
    return leaf;
  }

 private:
  std::vector<at::Tensor> leaves_;
};

// What a micro-batch holds while it is under way.
struct Flight {
  Flight(const Program& program, SlotBytes& bytes)
      : values(program.slots, bytes),
        gradients(program.slots, bytes),
        tapes(program.segments.size()) {}
  void clear() {
    batch = {};
    values.clear();
    gradients.clear();
    for (Tape& tape : tapes) tape.clear();
  }
  model::Batch batch;
  SlotStore values, gradients;
  std::vector<Tape> tapes;  // [segments]
};

}  // namespace

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
  void backward(const Instruction& instruction);
  void reduce(const Instruction& instruction);
  double local_loss() const;
  void fail(int index);
  void stop(std::exception_ptr error);
  std::string context(int index) const;
  void clear();

  const model::Model& model_;
  const Program& program_;
  Bindings bindings_;
  Liveness liveness_;
  std::vector<JoinedSegment> segments_;
  DeclaredParams params_;
  SlotBytes bytes_;
  std::vector<Flight> flights_;           // [micro_batches]
  std::vector<std::vector<int>> queues_;  // [queues] instruction indices
  std::vector<uint8_t> signals_;          // [instructions] another queue waits for it

  StepInput input_;
  StepReport report_;
  std::vector<at::Tensor> losses_;  // of the micro-batches, in order
  double group_busy_ms_ = 0;        // written by the group's thread, read after it came back
  double reduce_ms_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<uint8_t> done_;  // [instructions] with signals_, under mutex_
  std::exception_ptr error_;   // the first, under mutex_
  std::atomic<bool> stopped_ = false;
  std::vector<std::unique_ptr<QueueThread>> threads_;  // last: they end first
};

Executor::Run::Run(const model::Model& model, const Program& program, Bindings bindings)
    : model_(model),
      program_(program),
      bindings_(std::move(bindings)),
      liveness_(liveness(program)),
      params_(model.params.size()),
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
  report_ = {};
  report_.step = input.step;
  report_.global_targets = input.global_targets;
  group_busy_ms_ = 0;
  bytes_ = {};
  losses_.clear();
  done_.assign(program_.list.size(), 0);
  error_ = nullptr;
  stopped_ = false;
  const Clock::time_point start = Clock::now();
  for (auto& thread : threads_) thread->start();
  run_queue(kComputeQueue);
  for (auto& thread : threads_) thread->wait();
  clear();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  if (program_.groups.empty()) report_.loss_sum = local_loss();
  report_.wall_ms = ms_between(start, Clock::now());
  report_.group_busy_ms = report_.op_ms[static_cast<size_t>(Op::kReduce)] = group_busy_ms_;
  report_.peak_slot_bytes = bytes_.peak;
  return report_;
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
      group_busy_ms_ += ms_between(now, end);
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

void Executor::Run::execute(int index) {
  const Instruction& instruction = program_.list[index];
  switch (instruction.op) {
    case Op::kLoad:
      return load(instruction);
    case Op::kForward:
      return forward(index);
    case Op::kBackward:
      return backward(instruction);
    case Op::kReduce:
      return reduce(instruction);
    case Op::kNorm:
      report_.grad_norm = bindings_.hooks->norm();
      return;
    case Op::kClip:
      return bindings_.hooks->clip(report_.grad_norm);
    case Op::kUpdate:
      report_.updated = bindings_.hooks->update(input_, report_.grad_norm);
      return;
    default:
      throw InternalError("operation {} is not built", op_name(instruction.op));
  }
}

void Executor::Run::load(const Instruction& instruction) {
  flights_[instruction.micro_batch].batch = bindings_.batches->load(instruction.micro_batch);
}

void Executor::Run::forward(int index) {
  const Instruction& instruction = program_.list[index];
  Flight& flight = flights_[instruction.micro_batch];
  JoinedSegment& segment = segments_[instruction.segment];
  const SegmentRow& row = segment.row();
  params_.take(*bindings_.params, row.params);
  segment.forward({params_, flight.batch}, flight.values, flight.tapes[instruction.segment]);
  params_.drop(row.params);
  if (row.loss >= 0) {
    const at::Tensor& loss = flight.values[row.out[row.loss]];
    losses_.push_back(loss);
    if (bindings_.on_loss) {
      const at::Tensor logits =
          model_.logits_slot >= 0 ? flight.values[model_.logits_slot] : at::Tensor();
      bindings_.on_loss(instruction.micro_batch, flight.batch, loss, logits);
    }
  }
  for (model::Slot slot : liveness_.free_slots[index]) flight.values.take(slot);
  if (liveness_.free_batch[index]) flight.batch = {};
}

void Executor::Run::backward(const Instruction& instruction) {
  Flight& flight = flights_[instruction.micro_batch];
  const double seed = input_.global_targets > 0 ? 1.0 / input_.global_targets : 0.0;
  segments_[instruction.segment].backward(flight.tapes[instruction.segment], flight.gradients, seed,
                                          *bindings_.gradients);
}

void Executor::Run::reduce(const Instruction& instruction) {
  if (instruction.bucket != kLossBucket) {
    bindings_.data->all_reduce_sum(bindings_.buckets->bucket(instruction.bucket));
    return;
  }
  const at::Tensor sum = at::full({1}, local_loss(), at::kDouble);
  bindings_.data->all_reduce_sum(sum);
  report_.loss_sum = sum.item<double>();
}

double Executor::Run::local_loss() const {
  double sum = 0;
  for (const at::Tensor& loss : losses_) sum += loss.item<double>();
  return sum;
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

void Executor::Run::clear() {
  for (Flight& flight : flights_) flight.clear();
}

Executor::Executor(const model::Model& model, const Program& program, Bindings bindings)
    : run_(std::make_unique<Run>(model, program, std::move(bindings))) {}
Executor::~Executor() = default;
StepReport Executor::run(const StepInput& input) { return run_->run(input); }

}  // namespace mm::step
