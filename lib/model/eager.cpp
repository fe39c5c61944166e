#include "lib/model/eager.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include "lib/base/error.h"
#include "lib/model/initial_draw.h"

namespace mm::model {
namespace {

std::vector<const Segment*> segments_of(const Model& model) {
  std::vector<const Segment*> segments;
  for (const Block& block : model.blocks) {
    for (const Step& step : block.steps) {
      const auto* segment = std::get_if<Segment>(&step);
      MM_CHECK(segment != nullptr, "block {} has a boundary; the eager driver runs none",
               block.name);
      segments.push_back(segment);
    }
  }
  return segments;
}

/// What one segment keeps between its forward and its backward.
struct Tape {
  std::vector<at::Tensor> inputs, outputs;
  bool live = false;
};

std::vector<at::Tensor> run(const Segment& segment, const SegmentContext& context,
                            const std::vector<at::Tensor>& in) {
  std::vector<at::Tensor> out = segment.forward(context, in);
  MM_CHECK(out.size() == segment.out.size(), "{} wrote {} of {} slots", segment.name, out.size(),
           segment.out.size());
  return out;
}

Tape forward_one(const Segment& segment, const SegmentContext& context,
                 const std::vector<bool>& needs, const SlotValues& values) {
  Tape tape;
  for (Slot slot : segment.out) tape.live = tape.live || needs[slot];
  for (Slot slot : segment.in) {
    at::Tensor leaf = values[slot].detach();
    if (tape.live && needs[slot]) leaf.requires_grad_();
    tape.inputs.push_back(std::move(leaf));
  }
  const at::AutoGradMode mode(tape.live);
  tape.outputs = run(segment, context, tape.inputs);
  return tape;
}

/// Outputs of the tape that have a gradient, with it; the rest count as zero.
struct Seeds {
  std::vector<at::Tensor> outputs, gradients;
};

Seeds seeds_of(const Segment& segment, const Tape& tape, const SlotValues& slot_grads) {
  Seeds seeds;
  for (size_t i = 0; i < segment.out.size(); ++i) {
    const at::Tensor& gradient = slot_grads[segment.out[i]];
    if (!gradient.defined() || !tape.outputs[i].requires_grad()) continue;
    seeds.outputs.push_back(tape.outputs[i]);
    seeds.gradients.push_back(gradient);
  }
  return seeds;
}

void backward_one(const EagerStep& step, const Segment& segment, const Tape& tape,
                  SlotValues& slot_grads) {
  const Seeds seeds = seeds_of(segment, tape, slot_grads);
  if (seeds.outputs.empty()) return;
  std::vector<at::Tensor> leaves;
  std::vector<Slot> slots;
  std::vector<ParamId> params;
  for (size_t i = 0; i < segment.in.size(); ++i) {
    if (!tape.inputs[i].requires_grad()) continue;
    leaves.push_back(tape.inputs[i]);
    slots.push_back(segment.in[i]);
  }
  for (ParamId id : segment.params) {
    if (!step.trainable[id]) continue;
    leaves.push_back(step.params.get(id));
    params.push_back(id);
  }
  const auto gradients =
      torch::autograd::grad(seeds.outputs, leaves, seeds.gradients, /*retain_graph=*/std::nullopt,
                            /*create_graph=*/false, /*allow_unused=*/true);
  for (size_t i = 0; i < slots.size(); ++i) {
    at::Tensor& sum = slot_grads[slots[i]];
    if (gradients[i].defined()) sum = sum.defined() ? sum + gradients[i] : gradients[i];
  }
  for (size_t i = 0; i < params.size(); ++i) {
    const at::Tensor& gradient = gradients[slots.size() + i];
    if (gradient.defined()) step.sink.add(params[i], gradient);
  }
}

}  // namespace

SimpleParams::SimpleParams(const Model& model, std::vector<at::Tensor> values,
                           const std::vector<bool>& trainable)
    : gradients_(values.size()), trainable_(trainable) {
  MM_CHECK(values.size() == model.params.size() && trainable.size() == values.size(),
           "{} values, {} flags, {} parameters", values.size(), trainable.size(),
           model.params.size());
  for (size_t i = 0; i < values.size(); ++i) {
    MM_CHECK(values[i].sizes() == at::IntArrayRef(model.params[i].shape), "{} has another shape",
             model.params[i].name);
    leaves_.push_back(values[i].detach().requires_grad_(trainable[i]));
  }
}

SimpleParams SimpleParams::random(const Model& model, uint64_t seed, at::ScalarType dtype) {
  std::vector<at::Tensor> values;
  for (const ParamSpec& spec : model.params)
    values.push_back(InitialDraw(spec, seed).whole().to(dtype));
  return SimpleParams(model, std::move(values), std::vector<bool>(model.params.size(), true));
}

void SimpleParams::add(ParamId id, const at::Tensor& grad) {
  const at::Tensor wide = grad.scalar_type() == at::kDouble ? grad : grad.to(at::kFloat);
  at::Tensor& sum = gradients_[id];
  // Never changed in place, so what autograd handed out may be kept.
  sum = sum.defined() ? sum + wide : wide;
}

void SimpleParams::clear_grads() { gradients_.assign(gradients_.size(), at::Tensor()); }

SlotValues eager_forward(const Model& model, const ParamView& params, const Batch& batch,
                         KvCache* cache) {
  const at::NoGradGuard no_grad;
  SlotValues values(model.slots.size());
  const SegmentContext context{params, batch, cache};
  for (const Segment* segment : segments_of(model)) {
    std::vector<at::Tensor> in;
    for (Slot slot : segment->in) in.push_back(values[slot]);
    std::vector<at::Tensor> out = run(*segment, context, in);
    for (size_t i = 0; i < out.size(); ++i) values[segment->out[i]] = std::move(out[i]);
  }
  return values;
}

SlotValues eager_train(const EagerStep& step, const Batch& batch) {
  const auto segments = segments_of(step.model);
  const auto needs = slots_needing_grad(step.model, step.trainable);
  const SegmentContext context{step.params, batch};
  SlotValues values(step.model.slots.size()), slot_grads(step.model.slots.size());
  std::vector<Tape> tapes;
  for (const Segment* segment : segments) {
    tapes.push_back(forward_one(*segment, context, needs, values));
    for (size_t i = 0; i < segment->out.size(); ++i)
      values[segment->out[i]] = tapes.back().outputs[i].detach();
  }
  slot_grads[step.model.loss_slot] = at::full_like(values[step.model.loss_slot], step.seed);
  for (size_t i = segments.size(); i-- > 0;) {
    if (tapes[i].live) backward_one(step, *segments[i], tapes[i], slot_grads);
    tapes[i] = Tape();
  }
  return values;
}

}  // namespace mm::model
