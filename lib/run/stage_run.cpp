#include "lib/run/stage_run.h"

#include <ATen/ATen.h>

#include <cmath>

#include "lib/base/error.h"
#include "lib/base/log.h"
#include "lib/optim/grad_norm.h"
#include "lib/run/batch_tensors.h"
#include "lib/run/data_access.h"
#include "lib/run/model_setup.h"
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
  options.plan = {.seed = in.recipe.seed,
                  .sequence_length = static_cast<int32_t>(stage.sequence_length),
                  .max_images = static_cast<int32_t>(stage.max_images),
                  .packs_per_step = static_cast<int32_t>(stage.packs_per_step),
                  .packing = *data::packing_from_name(stage.packing)};
  options.rank = in.comm.rank;
  options.ranks = in.comm.world;
  options.start_step = static_cast<uint64_t>(in.start_step);
  options.prefetch_steps = static_cast<int>(in.recipe.loader_prefetch);
  options.threads = static_cast<int>(in.recipe.loader_threads);
  options.max_threads = static_cast<int>(in.recipe.loader_max_threads);
  options.max_prefetch_steps = static_cast<int>(in.recipe.loader_max_prefetch);
  options.memory_bytes = static_cast<uint64_t>(in.recipe.loader_memory_mib) << 20;
  options.pixel_memory = pinned_memory();
  options.augmentation = {
      .seed = in.recipe.seed,
      .shift_pixels = static_cast<int32_t>(stage.augment.shift_pixels),
      .flip_probability = stage.augment.flip_probability,
      .brightness = stage.augment.brightness,
      .token_drop = stage.augment.token_drop,
      .drop_token = static_cast<int32_t>(std::max<int64_t>(0, in.config.text.bos_token))};
  return options;
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
  explicit Batches(const StageInputs& in)
      : in(in), norm(pixel_norm(in.recipe.model.normalise.mean, in.recipe.model.normalise.std)) {}
  model::Batch load(int micro_batch) override {
    return to_batch(current.micro_batches.at(static_cast<size_t>(micro_batch)),
                    in.config.vision.image_size, in.params.precision().compute, norm);
  }
  const StageInputs& in;
  const PixelNorm norm;
  data::LoaderStep current;
};

/// Norm, clip and update on the sink's buckets.
struct StageRun::Hooks final : step::UpdateHooks, step::ReduceTarget {
  explicit Hooks(StageRun& run) : run(run) {}
  at::Tensor bucket(int index) override {
    return run.sink_.buckets().at(static_cast<size_t>(index)).flat;
  }
  double norm() override { return optim::grad_norm(run.sink_.buckets()); }
  void clip(double norm) override {
    const double factor = optim::clip_factor(norm, stage_of(run.inputs_).clip_norm);
    if (factor < 1) optim::scale_grads(run.sink_.buckets(), factor);
  }
  bool update(const step::StepInput& input, double norm) override {
    if (input.global_targets == 0) {
      if (run.inputs_.comm.rank == 0)
        log::warn("run", "step has no targets, nothing is updated", {{"step", input.step}});
      return false;
    }
    if (!std::isfinite(norm))
      throw NumericalError(
          "step {}: the gradient norm is {}; lower the learning rate, or look at the samples of "
          "this step in the ledger",
          input.step, norm);
    std::map<model::Part, double> rates;
    for (model::Part part :
         {model::Part::kVision, model::Part::kProjector, model::Part::kLanguage}) {
      const auto schedule = run.schedules_.find(model::part_name(part));
      if (schedule != run.schedules_.end()) rates[part] = schedule->second.at(run.next_step_);
    }
    run.optimizer_.update(rates);
    return true;
  }
  StageRun& run;
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
      optimizer_(inputs.params, sink_,
                 {.beta1 = stage_of(inputs).beta1,
                  .beta2 = stage_of(inputs).beta2,
                  .eps = stage_of(inputs).eps,
                  .weight_decay = stage_of(inputs).weight_decay}),
      loader_(inputs.store, loader_options(inputs)),
      schedules_(schedules_of(stage_of(inputs))),
      hooks_(std::make_unique<Hooks>(*this)),
      batches_(std::make_unique<Batches>(inputs_)),
      next_step_(inputs.start_step) {}

StageRun::~StageRun() = default;

StageRun::Runner& StageRun::runner(int micro_batches) {
  std::unique_ptr<Runner>& slot = runners_[micro_batches];
  if (slot) return *slot;
  step::BuildOptions options{.micro_batches = micro_batches,
                             .trainable = inputs_.params.trainable(),
                             .data_ranks = inputs_.comm.world,
                             .clip = stage_of(inputs_).clip_norm > 0};
  for (const optim::Bucket& bucket : sink_.buckets())
    options.buckets.push_back({.params = bucket.params, .elements = bucket.flat.numel()});
  auto made = std::make_unique<Runner>();
  made->program = step::build_step(inputs_.params.model(), options);
  const std::vector<step::Problem> problems = step::check(made->program);
  if (!problems.empty())
    throw InternalError("step program: {}", step::describe(problems.front(), made->program));
  step::verify_same_program(*inputs_.comm.control, made->program.hash());
  made->executor =
      std::make_unique<step::Executor>(inputs_.params.model(), made->program,
                                       step::Bindings{.batches = batches_.get(),
                                                      .params = &inputs_.params,
                                                      .gradients = &sink_,
                                                      .buckets = hooks_.get(),
                                                      .hooks = hooks_.get(),
                                                      .data = inputs_.comm.data.get()});
  slot = std::move(made);
  return *slot;
}

StageStep StageRun::run_step(int64_t global_step) {
  StageStep result;
  batches_->current = loader_.next();
  data::LoaderStep& current = batches_->current;
  sink_.zero();
  Runner& run = runner(static_cast<int>(current.micro_batches.size()));
  result.report = run.executor->run(
      {.step = global_step, .global_targets = static_cast<double>(current.plan.targets)});
  for (const auto& [part, schedule] : schedules_) result.lr[part] = schedule.at(next_step_);
  for (const data::MicroBatch& mb : current.micro_batches)
    result.samples.insert(result.samples.end(), mb.sample_ids.begin(), mb.sample_ids.end());
  result.plan = std::move(current.plan);
  result.bad = std::move(current.bad);
  result.wait_ms = current.wait_ms;
  ++next_step_;
  return result;
}

std::vector<state::StateTensor> StageRun::moments() const {
  std::vector<state::StateTensor> tensors;
  const std::vector<model::ParamSpec>& specs = inputs_.params.model().params;
  for (size_t i = 0; i < specs.size(); ++i) {
    if (!inputs_.params.trainable()[i]) continue;
    const auto id = static_cast<model::ParamId>(i);
    tensors.push_back({"optimizer.exp_avg." + specs[i].name, optimizer_.exp_avg(id)});
    tensors.push_back({"optimizer.exp_avg_sq." + specs[i].name, optimizer_.exp_avg_sq(id)});
  }
  return tensors;
}

}  // namespace mm::run
