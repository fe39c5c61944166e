#include <ATen/ops/full.h>

#include "lib/base/error.h"
#include "lib/step/executor_run.h"

namespace mm::step {

void Executor::Run::execute(int index) {
  const Instruction& instruction = program_.list[index];
  switch (instruction.op) {
    case Op::kLoad:
      return load(instruction);
    case Op::kForward:
      return forward(index);
    case Op::kBackward:
      return backward(instruction);
    case Op::kRecompute:
      return recompute(index);
    case Op::kReduce:
      return reduce(instruction);
    case Op::kNorm:
      return norm();
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
  const int m = instruction.micro_batch;
  const bool next = instruction.ahead && !prologue_;
  flight_of(instruction).batch =
      next ? bindings_.batches->load_next(m) : bindings_.batches->load(m);
}

void Executor::Run::forward(int index) {
  const Instruction& instruction = program_.list[index];
  Flight& flight = flight_of(instruction);
  DeclaredParams& params = params_of(instruction);
  JoinedSegment& segment = segments_[instruction.segment];
  const SegmentRow& row = segment.row();
  params.take(*bindings_.params, row.params);
  segment.forward({params, flight.batch}, flight.values, flight.tapes[instruction.segment]);
  params.drop(row.params);
  if (bindings_.on_value) {
    for (const model::Slot slot : row.out) bindings_.on_value(slot, flight.values[slot]);
  }
  if (row.loss >= 0) {
    const at::Tensor& loss = flight.values[row.out[row.loss]];
    losses_.push_back(loss);
    note_sample_losses(instruction.micro_batch);
    if (bindings_.on_loss) {
      const at::Tensor logits =
          model_.logits_slot >= 0 ? flight.values[model_.logits_slot] : at::Tensor();
      bindings_.on_loss(instruction.micro_batch, flight.batch, loss, logits);
    }
  }
  free_after(index);
}

void Executor::Run::recompute(int index) {
  const Instruction& instruction = program_.list[index];
  Flight& flight = flights_[instruction.micro_batch];
  JoinedSegment& segment = segments_[instruction.segment];
  params_.take(*bindings_.params, segment.row().params);
  segment.recompute({params_, flight.batch}, flight.values, flight.tapes[instruction.segment]);
  params_.drop(segment.row().params);
  free_after(index);
}

Flight& Executor::Run::flight_of(const Instruction& instruction) {
  return (instruction.ahead ? next_flights_ : flights_)[instruction.micro_batch];
}

DeclaredParams& Executor::Run::params_of(const Instruction& instruction) {
  return instruction.ahead ? next_params_ : params_;
}

void Executor::Run::free_after(int index) {
  Flight& flight = flight_of(program_.list[index]);
  for (model::Slot slot : liveness_.free_slots[index]) flight.values.take(slot);
  if (liveness_.free_batch[index]) flight.batch = {};
}

void Executor::Run::backward(const Instruction& instruction) {
  Flight& flight = flights_[instruction.micro_batch];
  const double seed = input_.divisor > 0 ? input_.loss_scale / input_.divisor : 0.0;
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

void Executor::Run::norm() {
  const GradNorm norm = bindings_.hooks->norm();
  report_.grad_norm = norm.total;
  report_.part_norms = norm.parts;
}

void Executor::Run::note_sample_losses(int micro_batch) {
  if (model_.sample_losses_slot < 0) return;
  const at::Tensor& losses = flights_[micro_batch].values[model_.sample_losses_slot];
  if (!losses.defined()) return;
  const at::Tensor here = losses.to(at::kCPU, at::kDouble).contiguous();
  const auto* values = here.const_data_ptr<double>();
  report_.sample_losses.at(micro_batch).assign(values, values + here.numel());
}

double Executor::Run::local_loss() const {
  double sum = 0;
  for (const at::Tensor& loss : losses_) sum += loss.item<double>();
  return sum;
}

}  // namespace mm::step
