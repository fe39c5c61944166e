#include "tools/bench_llava/program_step.h"

#include <c10/util/accumulate.h>

#include "lib/step/builder.h"

namespace mm::bench {
namespace {

step::BuildOptions build_options(const model::Model& model, const std::vector<bool>& trainable,
                                 const std::string& kind) {
  step::BuildOptions build{.trainable = trainable, .clip = false};
  build.recompute =
      kind == "block"
          ? step::Recompute{.kind = step::Recompute::Kind::kBlock, .pieces = {}}
          : step::Recompute{.kind = step::Recompute::Kind::kSelective, .pieces = {"mlp"}};
  step::BucketRow all;
  for (size_t p = 0; p < model.params.size(); ++p) {
    if (!trainable[p]) continue;
    all.params.push_back(static_cast<model::ParamId>(p));
    all.elements += c10::multiply_integers(model.params[p].shape);
  }
  build.buckets.push_back(std::move(all));
  return build;
}

}  // namespace

class ProgramStep::Hooks final : public step::UpdateHooks, public step::BatchSource {
 public:
  Hooks(const model::Batch& batch, TrainingState& state) : batch_(batch), state_(state) {}
  model::Batch load(int) override { return batch_; }
  step::GradNorm norm() override { return {.total = 0, .parts = {}}; }
  void clip(double) override {}
  bool update(const step::StepInput&, double) override {
    state_.update();
    return true;
  }

 private:
  const model::Batch& batch_;
  TrainingState& state_;
};

ProgramStep::ProgramStep(const model::Model& model, const std::vector<bool>& trainable,
                         const model::Batch& batch, TrainingState& state, const std::string& kind)
    : targets_(static_cast<double>(batch.sizes.targets)),
      hooks_(std::make_unique<Hooks>(batch, state)),
      program_(step::build_step(model, build_options(model, trainable, kind))),
      executor_(std::make_unique<step::Executor>(model, program_,
                                                 step::Bindings{.batches = hooks_.get(),
                                                                .params = &state.params(),
                                                                .gradients = &state.sink(),
                                                                .hooks = hooks_.get()})) {}

ProgramStep::~ProgramStep() = default;

void ProgramStep::run() { executor_->run({.step = 1, .global_targets = targets_}); }

}  // namespace mm::bench
