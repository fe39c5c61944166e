#include "lib/step/joined_segment.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <map>

#include "lib/base/error.h"

namespace mm::step {

JoinedSegment::JoinedSegment(const model::Model& model, const SegmentRow& row)
    : model_(model), row_(row) {
  std::map<model::Slot, int> register_of;
  int next = 0;
  for (model::Slot slot : row.in) register_of[slot] = next++;
  const model::Block& block = model.blocks.at(row.block);
  for (int s = row.first_step; s < row.first_step + row.steps; ++s) {
    const auto* segment = std::get_if<model::Segment>(&block.steps.at(s));
    if (segment == nullptr) continue;
    Part part{segment, {}};
    for (model::Slot slot : segment->in) part.inputs.push_back(register_of.at(slot));
    for (model::Slot slot : segment->out) register_of[slot] = next++;
    parts_.push_back(std::move(part));
  }
  for (model::Slot slot : row.out) outputs_.push_back(register_of.at(slot));
}

void JoinedSegment::forward(const model::SegmentContext& context, SlotStore& values, Tape& tape) {
  const model::Sizes& sizes = context.batch.sizes;
  if (row_.pictures_at_once > 0 && sizes.images > row_.pictures_at_once &&
      context.batch.patch_layout == nullptr)
    return forward_in_chunks(context, values);
  const bool taped = row_.has_backward && !row_.recompute;
  at::AutoGradMode mode(taped);
  collect_leaves(context, values, tape);
  run_parts(context);
  for (size_t k = 0; k < row_.out.size(); ++k) {
    const at::Tensor& output = registers_[outputs_[k]];
    if (output.defined()) values.set(row_.out[k], output.detach());
  }
  if (taped) keep_outputs(context, tape);
  registers_.clear();
  if (!taped) tape.clear();
}

// Pictures know nothing of each other in front of the language model, so any cut gives the same.
void JoinedSegment::forward_in_chunks(const model::SegmentContext& context, SlotStore& values) {
  const int64_t images = context.batch.sizes.images;
  std::vector<std::vector<at::Tensor>> chunks(row_.out.size());
  for (int64_t begin = 0; begin < images; begin += row_.pictures_at_once) {
    const int64_t count = std::min<int64_t>(row_.pictures_at_once, images - begin);
    model::Batch some = context.batch;
    some.pixel_values = some.pixel_values.narrow(0, begin, count);
    some.sizes.images = count;
    registers_.clear();
    for (model::Slot slot : row_.in) {
      const at::Tensor& whole = values[slot];
      MM_CHECK(whole.defined() && whole.size(0) % images == 0, "slot {} is not made of {} pictures",
               model_.slots[slot], images);
      const int64_t rows = whole.size(0) / images;
      registers_.push_back(as_computed(whole.narrow(0, begin * rows, count * rows)));
    }
    run_parts({context.params, some, context.kv_cache});
    for (size_t k = 0; k < row_.out.size(); ++k)
      chunks[k].push_back(registers_[outputs_[k]].detach());
  }
  registers_.clear();
  for (size_t k = 0; k < row_.out.size(); ++k) values.set(row_.out[k], at::cat(chunks[k]));
}

void JoinedSegment::recompute(const model::SegmentContext& context, const SlotStore& values,
                              Tape& tape) {
  at::AutoGradMode mode(true);
  collect_leaves(context, values, tape);
  run_parts(context);
  keep_outputs(context, tape);
  registers_.clear();
}

void JoinedSegment::keep_outputs(const model::SegmentContext& context, Tape& tape) {
  for (size_t k = 0; k < row_.out.size(); ++k) {
    if (row_.out_needs_grad[k]) tape.outputs.push_back(std::move(registers_[outputs_[k]]));
  }
  const model::Sizes& sizes = context.batch.sizes;
  tape.has_gaps = sizes.tokens == 0 || sizes.images == 0;
}

at::Tensor JoinedSegment::as_computed(const at::Tensor& value) const {
  const bool other = row_.compute != at::ScalarType::Undefined && value.is_floating_point() &&
                     value.scalar_type() != row_.compute;
  return other ? value.detach().to(row_.compute) : value;
}

void JoinedSegment::collect_leaves(const model::SegmentContext& context, const SlotStore& values,
                                   Tape& tape) {
  tape.clear();
  registers_.clear();
  for (size_t k = 0; k < row_.in.size(); ++k) {
    MM_CHECK(values[row_.in[k]].defined(), "slot {} is empty", model_.slots[row_.in[k]]);
    const at::Tensor value = as_computed(values[row_.in[k]]);
    if (row_.in_needs_grad[k]) {
      registers_.push_back(value.detach());
      registers_.back().requires_grad_(true);
      tape.leaves.push_back(registers_.back());
    } else {
      registers_.push_back(value);
    }
  }
  for (model::ParamId id : row_.trained) tape.leaves.push_back(context.params.get(id));
}

void JoinedSegment::run_parts(const model::SegmentContext& context) {
  for (const Part& part : parts_) {
    arguments_.clear();
    for (int input : part.inputs) arguments_.push_back(registers_[input]);
    std::vector<at::Tensor> outputs = part.segment->forward(context, arguments_);
    MM_CHECK(outputs.size() == part.segment->out.size(),
             "segment {} returned {} tensors, it declares {}", part.segment->name, outputs.size(),
             part.segment->out.size());
    for (at::Tensor& output : outputs) registers_.push_back(std::move(output));
  }
  arguments_.clear();
}

void JoinedSegment::backward(Tape& tape, SlotStore& gradients, double loss_seed,
                             model::GradSink& sink) {
  collect_roots(tape, gradients, loss_seed);
  tape.outputs.clear();
  if (!roots_.empty()) {
    std::vector<at::Tensor> results = torch::autograd::grad(
        roots_, tape.leaves, root_gradients_, /*retain_graph=*/false, /*create_graph=*/false,
        /*allow_unused=*/true);
    size_t next = 0;
    for (size_t k = 0; k < row_.in.size(); ++k) {
      if (!row_.in_needs_grad[k]) continue;
      at::Tensor& gradient = results[next++];
      if (gradient.defined()) gradients.accumulate(row_.in[k], std::move(gradient));
    }
    for (model::ParamId id : row_.trained) {
      const at::Tensor gradient = std::move(results[next++]);
      if (gradient.defined()) sink.add(id, gradient);
    }
  }
  roots_.clear();
  root_gradients_.clear();
  tape.clear();
}

void JoinedSegment::collect_roots(const Tape& tape, SlotStore& gradients, double loss_seed) {
  roots_.clear();
  root_gradients_.clear();
  size_t next = 0;
  for (size_t k = 0; k < row_.out.size(); ++k) {
    if (!row_.out_needs_grad[k]) continue;
    const at::Tensor& output = tape.outputs.at(next++);
    const bool is_loss = static_cast<int>(k) == row_.loss;
    at::Tensor gradient =
        is_loss ? at::full({}, loss_seed, output.options()) : gradients.take(row_.out[k]);
    if (!gradient.defined()) continue;
    if (!output.requires_grad()) {
      MM_CHECK(tape.has_gaps,
               "slot {} should carry a gradient, but its segment's output is a constant",
               model_.slots[row_.out[k]]);
      continue;
    }
    roots_.push_back(output);
    root_gradients_.push_back(gradient.to(output.scalar_type()));
  }
}

void JoinedSegment::drop_tensors() {
  for (std::vector<at::Tensor>* tensors : {&registers_, &arguments_, &roots_, &root_gradients_}) {
    tensors->clear();
  }
}

}  // namespace mm::step
