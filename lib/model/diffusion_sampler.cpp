#include "lib/model/diffusion_sampler.h"

#include <ATen/ATen.h>

namespace mm::model {
namespace {

at::Tensor twice(const at::Tensor& x) { return x.defined() ? at::cat({x, x}) : x; }

// Only the predicted half of the channels, in the dtype of x.
at::Tensor ask(const ConditionedModel& asked, Batch batch, const at::Tensor& x, double time) {
  auto input =
      std::make_shared<DiffusionInput>(batch.diffusion ? *batch.diffusion : DiffusionInput{});
  input->noisy = x;
  input->times = at::full({x.size(0)}, time, x.options());
  batch.diffusion = input;
  batch.want_logits = true;
  const SlotValues slots = eager_forward(asked.model, asked.params, batch);
  return slots[asked.model.logits_slot].narrow(1, 0, x.size(1));
}

}  // namespace

Batch with_and_without(const DiffusionConfig& config, const Batch& condition, int64_t pictures) {
  Batch both = condition;
  const DiffusionInput in = condition.diffusion ? *condition.diffusion : DiffusionInput{};
  auto out = std::make_shared<DiffusionInput>(in);
  if (in.labels.defined())
    out->labels = at::cat({in.labels, at::full_like(in.labels, config.classes)});
  for (at::Tensor DiffusionInput::*field :
       {&DiffusionInput::captions, &DiffusionInput::caption_mask, &DiffusionInput::pooled,
        &DiffusionInput::resolutions, &DiffusionInput::aspect_ratios})
    (*out).*field = twice(in.*field);
  const at::Tensor none = at::zeros({pictures}, at::kBool);
  out->caption_dropped = at::cat(
      {in.caption_dropped.defined() ? in.caption_dropped.to(at::kBool) : none, none.logical_not()});
  both.diffusion = out;
  // A text encoder's null caption is the empty one.
  if (!both.cu_seqlens.empty())
    both.cu_seqlens.insert(both.cu_seqlens.end(), static_cast<size_t>(pictures),
                           both.cu_seqlens.back());
  return both;
}

Predictor model_predictor(const ConditionedModel& asked, const Guidance& guidance) {
  if (guidance.scale == 1) {
    return
        [asked](const at::Tensor& x, double time) { return ask(asked, asked.condition, x, time); };
  }
  return [asked, guidance](const at::Tensor& x, double time) {
    const Batch both = with_and_without(asked.config, asked.condition, x.size(0));
    const auto halves = ask(asked, both, twice(x), time).chunk(2);
    return guided(guidance, halves[0], halves[1]);
  };
}

}  // namespace mm::model
