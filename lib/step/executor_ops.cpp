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

}  // namespace mm::step
