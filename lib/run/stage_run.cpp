#include "lib/run/stage_run.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/data/collate.h"
#include "lib/data/plan_cursor.h"
#include "lib/model/flops.h"
#include "lib/optim/adamw.h"
#include "lib/optim/grad_norm.h"
#include "lib/optim/lion.h"
#include "lib/run/data_access.h"
#include "lib/run/model_setup.h"
#include "lib/run/step_setup.h"
#include "lib/step/builder.h"
#include "lib/step/check.h"
#include "lib/step/verify.h"

namespace mm::run {
namespace {

const StageRecipe& stage_of(const StageInputs& in) { return in.recipe.stages[in.index]; }

/// Frees what the former stage trained and marks what this one does, before anything is sized by
/// it.
optim::ParamStore& with_trainable(const StageInputs& in) {
  in.params.set_trainable(trainable_flags(in.params.model(), stage_of(in).train));
  return in.params;
}

data::LoaderOptions loader_options(const StageInputs& in) {
  const StageRecipe& stage = stage_of(in);
  data::LoaderOptions options;
  options.plan = plan_options(in.recipe, stage);
  options.rank = in.comm.rank;
  options.ranks = in.comm.world;
  options.start_step = static_cast<uint64_t>(in.start_step);
  options.prefetch_steps = static_cast<int>(in.recipe.loader_prefetch);
  options.threads = static_cast<int>(in.recipe.loader_threads);
  options.max_threads = static_cast<int>(in.recipe.loader_max_threads);
  options.max_prefetch_steps = static_cast<int>(in.recipe.loader_max_prefetch);
  options.memory_bytes = static_cast<uint64_t>(in.recipe.loader_memory_mib) << 20;
  options.pixel_memory = pinned_memory();
  options.augmentation = {.seed = in.recipe.seed,
                          .shift_pixels = static_cast<int32_t>(stage.augment.shift_pixels),
                          .flip_probability = stage.augment.flip_probability,
                          .brightness = stage.augment.brightness,
                          .token_drop = stage.augment.token_drop,
                          .drop_token = in.family.drop_token()};
  return options;
}

std::unique_ptr<optim::Optimizer> make_optimizer(const StageInputs& in,
                                                 const optim::FlatGradSink& sink) {
  const StageRecipe& stage = stage_of(in);
  if (stage.optimizer == "lion") {
    return std::make_unique<optim::Lion>(
        in.params, sink,
        optim::LionOptions{
            .beta1 = stage.beta1, .beta2 = stage.beta2, .weight_decay = stage.weight_decay});
  }
  return std::make_unique<optim::AdamW>(in.params, sink,
                                        optim::AdamWOptions{.beta1 = stage.beta1,
                                                            .beta2 = stage.beta2,
                                                            .eps = stage.eps,
                                                            .weight_decay = stage.weight_decay});
}

std::map<std::string, optim::Schedule> schedules_of(const StageRecipe& stage) {
  std::map<std::string, optim::Schedule> schedules;
  for (const auto& [part, base] : stage.lr) {
    schedules[part] = {.kind = *optim::schedule_kind(stage.schedule.kind),
                       .base = base,
                       .min = base * stage.schedule.min_ratio,
                       .warmup_steps = stage.schedule.warmup_steps,
                       .total_steps = stage.steps,
                       .decay_steps = stage.schedule.decay_steps};
  }
  return schedules;
}

}  // namespace

/// The loader's micro-batches as the executor's load instructions want them.
struct StageRun::Batches final : step::BatchSource {
  Batches(const StageInputs& in, const LossWeights& weights) : in(in), weights(weights) {}
  model::Batch load(int micro_batch) override { return batch_of(current, micro_batch); }
  model::Batch load_next(int micro_batch) override { return batch_of(next.value(), micro_batch); }
  const StageInputs& in;
  const LossWeights& weights;
  data::LoaderStep current;
  std::optional<data::LoaderStep> next;  ///< in runs whose frozen blocks work ahead

 private:
  model::Batch batch_of(const data::LoaderStep& step, int micro_batch) const {
    model::Batch batch =
        in.family.to_batch(step.micro_batches.at(static_cast<size_t>(micro_batch)),
                           {in.params.precision(), in.index, step.plan.position.epoch});
    batch.target_weights =
        weights.of_micro_batch(step, in.comm.rank, micro_batch, in.params.precision().master);
    return batch;
  }
};

/// Norm, clip and update on the sink's buckets.
struct StageRun::Hooks final : step::UpdateHooks, step::ReduceTarget {
  explicit Hooks(StageRun& run) : run(run) {}
  at::Tensor bucket(int index) override {
    return run.sink_.buckets().at(static_cast<size_t>(index)).flat;
  }
  step::GradNorm norm() override {
    // Exact: the scale is a power of two.
    if (run.scaler_) optim::scale_grads(run.sink_.buckets(), 1 / run.scaler_->scale());
    const auto parts = optim::part_norms(run.sink_.buckets());
    return {optim::total_norm(parts), parts};
  }
  void clip(double norm) override {
    if (!std::isfinite(norm)) return;  // nothing will be updated
    const double factor = optim::clip_factor(norm, stage_of(run.inputs_).clip_norm);
    if (factor < 1) optim::scale_grads(run.sink_.buckets(), factor);
  }
  bool update(const step::StepInput& input, double norm) override {
    if (run.rehearsing_) return false;
    if (input.global_targets == 0) {
      if (run.inputs_.comm.rank == 0)
        log::warn("run", "step has no targets, nothing is updated", {{"step", input.step}});
      skip_reason = "no_targets";
      return false;
    }
    if (run.scaler_ && overflowed(input.step, norm)) return false;
    if (!std::isfinite(norm))
      throw NumericalError(
          "step {}: the gradient norm is {}; lower the learning rate, or look at the samples of "
          "this step in the ledger",
          input.step, norm);
    std::map<model::Part, double> rates;
    for (model::Part part : model::kAllParts) {
      const auto schedule = run.schedules_.find(model::part_name(part));
      if (schedule != run.schedules_.end()) rates[part] = run.rate(schedule->second);
    }
    run.optimizer_->update(rates);
    if (run.inputs_.average != nullptr) run.inputs_.average->update();
    return true;
  }
  StageRun& run;
  const char* skip_reason = "";  ///< StageStep::skip_reason of the step that runs

 private:
  /// Tells the loss scaler of a step; whether it is to be left out. All ranks have the same norm.
  bool overflowed(int64_t step, double norm) {
    const double before = run.scaler_->scale();
    const bool last = run.scaler_->at_smallest(), overflow = !std::isfinite(norm);
    run.scaler_->step_done(overflow);
    if (!overflow) return false;
    if (last)
      throw NumericalError(
          "step {}: the gradient norm is {} at the smallest loss scale, {}: its values are no "
          "numbers, or beyond fp16 by themselves; lower the learning rate, set precision.compute "
          "to bf16, or look at the samples of this step in the ledger",
          step, norm, before);
    if (run.inputs_.comm.rank == 0)
      log::warn(
          "run", "fp16 gradients overflowed, nothing is updated",
          {{"step", step}, {"loss_scale", before}, {"next_loss_scale", run.scaler_->scale()}});
    skip_reason = "overflow";
    return true;
  }
};

/// A program and what runs it.
struct StageRun::Runner {
  step::Program program;
  std::unique_ptr<step::Executor> executor;
};

StageRun::StageRun(const StageInputs& inputs)
    : inputs_(inputs),
      sink_(inputs.params.model(), with_trainable(inputs).trainable(),
            {.bucket_bytes = inputs.recipe.bucket_mib << 20,
             .accumulate = inputs.params.precision().master}),
      optimizer_(make_optimizer(inputs, sink_)),
      loader_(inputs.store, loader_options(inputs)),
      loss_weights_(stage_of(inputs).loss, inputs.store.sizes()),
      schedules_(schedules_of(stage_of(inputs))),
      activations_(inputs.params.model()),
      hooks_(std::make_unique<Hooks>(*this)),
      batches_(std::make_unique<Batches>(inputs_, loss_weights_)),
      next_step_(inputs.start_step) {
  if (counts_in_fp16(inputs.params.precision()))
    scaler_.emplace(inputs.recipe.loss_scale, inputs.recipe.loss_scale_growth_steps);
}

StageRun::~StageRun() = default;

StageRun::Runner& StageRun::runner(int micro_batches) {
  std::unique_ptr<Runner>& slot = runners_[micro_batches];
  if (slot) return *slot;
  step::BuildOptions options =
      build_options(inputs_.recipe, stage_of(inputs_), inputs_.params.trainable());
  options.micro_batches = micro_batches;
  options.data_ranks = inputs_.comm.world;
  for (const optim::Bucket& bucket : sink_.buckets())
    options.buckets.push_back({.params = bucket.params, .elements = bucket.flat.numel()});
  auto made = std::make_unique<Runner>();
  made->program = step::build_step(inputs_.params.model(), options);
  const std::vector<step::Problem> problems = step::check(made->program);
  if (!problems.empty())
    throw InternalError("step program: {}", step::describe(problems.front(), made->program));
  step::verify_same_program(*inputs_.comm.control, made->program.hash());
  std::function<void(model::Slot, const at::Tensor&)> look;
  if (inputs_.recipe.metrics.activations())
    look = [this](model::Slot slot, const at::Tensor& value) { activations_.saw(slot, value); };
  made->executor = std::make_unique<step::Executor>(inputs_.params.model(), made->program,
                                                    step::Bindings{.batches = batches_.get(),
                                                                   .params = &inputs_.params,
                                                                   .gradients = &sink_,
                                                                   .buckets = hooks_.get(),
                                                                   .hooks = hooks_.get(),
                                                                   .data = inputs_.comm.data.get(),
                                                                   .on_value = look});
  slot = std::move(made);
  return *slot;
}

/// Of sample `s`; a picture of a bucketed set is one.
static int64_t targets_of(const data::MicroBatch& mb, size_t s, bool bucketed) {
  if (bucketed) return mb.weights.empty() || mb.weights[s] > 0 ? 1 : 0;
  return std::count_if(mb.targets.begin() + mb.cu_seqlens[s],
                       mb.targets.begin() + mb.cu_seqlens[s + 1], [](int32_t t) { return t >= 0; });
}

/// Which samples this rank had in a step, and what they cost.
static void note_samples(const data::LoaderStep& step, StageStep& result) {
  const bool bucketed = !step.plan.packs.empty() && !step.plan.packs.front().bucket.empty();
  for (size_t m = 0; m < step.micro_batches.size(); ++m) {
    const data::MicroBatch& mb = step.micro_batches[m];
    const std::vector<double>& losses = result.report.sample_losses.at(m);
    for (size_t s = 0; s < mb.sample_ids.size(); ++s) {
      if (mb.sample_ids[s] == data::kFillerId) continue;
      result.samples.push_back(mb.sample_ids[s]);
      result.sample_targets.push_back(targets_of(mb, s, bucketed));
      const bool counts = result.sample_targets.back() > 0 && s < losses.size();
      result.sample_losses.push_back(counts ? losses[s] : 0);
    }
  }
}

/// The step to run; where frozen blocks work ahead also the one behind it, but for the last.
data::LoaderStep StageRun::next_of_loader() {
  data::LoaderStep step = batches_->next ? std::move(*batches_->next) : loader_.next();
  batches_->next.reset();
  const bool last = next_step_ + 1 >= stage_of(inputs_).steps;
  if (inputs_.recipe.frozen_ahead && !last) batches_->next = loader_.next();
  return step;
}

StageStep StageRun::run_step(int64_t global_step) {
  StageStep result;
  for (const auto& [part, schedule] : schedules_) result.lr[part] = rate(schedule);
  batches_->current = next_of_loader();
  data::LoaderStep& current = batches_->current;
  sink_.zero();
  hooks_->skip_reason = "";
  Runner& run = runner(static_cast<int>(current.micro_batches.size()));
  result.report = run.executor->run(
      {.step = global_step,
       .global_targets = static_cast<double>(current.plan.targets),
       .divisor =
           inputs_.family.divisor(current.plan).value_or(loss_weights_.divisor(current.plan)),
       .loss_scale = scaler_ ? scaler_->scale() : 1.0,
       .next_follows =
           batches_->next && batches_->next->micro_batches.size() == current.micro_batches.size()});
  result.skip_reason = hooks_->skip_reason;
  note_samples(current, result);
  for (const data::MicroBatch& mb : current.micro_batches)
    result.pictures = model::add_sizes(result.pictures, inputs_.family.picture_sizes(mb));
  result.plan = std::move(current.plan);
  result.bad = std::move(current.bad);
  result.wait_ms = current.wait_ms;
  ++next_step_;
  return result;
}

void StageRun::rehearse() {
  const std::vector<data::SampleSize> sizes = inputs_.store.sizes();
  data::LoaderStep& step = batches_->current;
  step = {};
  step.plan = data::PlanCursor(sizes, plan_options(inputs_.recipe, stage_of(inputs_))).costliest();
  step.dealt.assign(static_cast<size_t>(inputs_.comm.world), {0});
  step.micro_batches.push_back(data::assemble(inputs_.store, sizes, step.plan.packs.at(0)).batch);
  sink_.zero();
  rehearsing_ = true;
  const double targets = static_cast<double>(std::max<int64_t>(1, step.plan.targets));
  runner(1).executor->run({.global_targets = targets * inputs_.comm.world});
  rehearsing_ = false;
  if (inputs_.comm.rank == 0)
    log::info("run", "costliest pack fits",
              {{"stage", stage_of(inputs_).name},
               {"tokens", step.plan.tokens},
               {"images", step.plan.images},
               {"memory_gib", peak_memory_gib()}});
}

std::vector<state::StateTensor> StageRun::moments() const {
  std::vector<state::StateTensor> tensors;
  const std::vector<model::ParamSpec>& specs = inputs_.params.model().params;
  for (size_t i = 0; i < specs.size(); ++i) {
    if (!inputs_.params.trainable()[i]) continue;
    const auto id = static_cast<model::ParamId>(i);
    for (const optim::Optimizer::Moment& moment : optimizer_->moments(id))
      tensors.push_back({"optimizer." + moment.name + "." + specs[i].name, moment.value});
  }
  return tensors;
}

}  // namespace mm::run
