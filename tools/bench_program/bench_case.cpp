#include "tools/bench_program/bench_case.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <map>

#include "lib/model/llava.h"
#include "lib/optim/grad_norm.h"
#include "lib/step/builder.h"

namespace mm::bench {
namespace {

constexpr double kClipNorm = 1.0;
const std::map<model::Part, double> kRates = {
    {model::Part::kVision, 1e-4}, {model::Part::kProjector, 1e-4}, {model::Part::kLanguage, 1e-4}};

// 6.0 M parameters: about the quick start's model.
model::LlavaConfig small_llava() {
  model::LlavaConfig config;
  config.vision = {.hidden = 192,
                   .intermediate = 768,
                   .layers = 5,
                   .heads = 3,
                   .image_size = 64,
                   .patch_size = 8};
  config.text = {.vocab = 1024,
                 .hidden = 256,
                 .intermediate = 688,
                 .layers = 4,
                 .heads = 4,
                 .kv_heads = 4,
                 .head_size = 64};
  config.image_token_index = 3;
  return config;
}

// Samples of 128 tokens, one picture in front of each of the first `images`; the second half of a
// sample is trained on.
model::Batch make_batch(const model::LlavaConfig& config, const CaseOptions& options, int seed) {
  const int64_t T = options.tokens, patches = config.patches_per_image(), sample = 128;
  model::Batch batch;
  batch.tokens = (at::arange(T, at::kLong) * 37 + seed) % 1000 + 4;
  batch.targets = (at::arange(T, at::kLong) * 37 + seed + 37) % 1000 + 4;
  batch.targets.masked_fill_(at::arange(T, at::kLong).remainder(sample).lt(sample / 2), -100);
  batch.positions = at::arange(T, at::kLong).remainder(sample);
  for (int64_t start = 0; start <= T; start += sample) batch.cu_seqlens.push_back(start);
  std::vector<at::Tensor> rows;
  for (int64_t i = 0; i < options.images; ++i)
    rows.push_back(at::arange(patches, at::kLong) + i * sample);
  batch.image_token_index = at::cat(rows);
  batch.tokens.index_fill_(0, batch.image_token_index, config.image_token_index);
  const int64_t side = config.vision.image_size;
  batch.pixel_values =
      at::sin(at::arange(options.images * 3 * side * side, at::kFloat) * 0.01 + seed)
          .view({options.images, 3, side, side})
          .to(options.bf16 ? at::kBFloat16 : at::kFloat);
  batch.sizes = {.tokens = T,
                 .samples = T / sample,
                 .images = options.images,
                 .patches = patches,
                 .targets = T / 2};
  return batch;
}

class Source final : public step::BatchSource {
 public:
  explicit Source(const std::vector<model::Batch>& batches) : batches_(batches) {}
  model::Batch load(int micro_batch) override { return batches_[micro_batch]; }

 private:
  const std::vector<model::Batch>& batches_;
};

}  // namespace

class BenchCase::Hooks final : public step::UpdateHooks {
 public:
  explicit Hooks(BenchCase& owner) : owner_(owner), source(owner.batches_) {}
  step::GradNorm norm() override {
    return {.total = optim::grad_norm(owner_.gradients_->buckets()), .parts = {}};
  }
  void clip(double norm) override {
    optim::scale_grads(owner_.gradients_->buckets(), optim::clip_factor(norm, kClipNorm));
  }
  bool update(const step::StepInput&, double) override {
    owner_.optimizer_->update(kRates);
    return true;
  }

 private:
  BenchCase& owner_;

 public:
  Source source;
};

BenchCase::BenchCase(const CaseOptions& options)
    : options_(options), model_(model::build_llava(small_llava())) {
  for (int m = 0; m < options.micro_batches; ++m) {
    batches_.push_back(make_batch(small_llava(), options, m));
    targets_ += static_cast<double>(batches_.back().sizes.targets);
  }
  params_ = std::make_unique<optim::ParamStore>(
      model_, optim::Precision{.compute = options.bf16 ? at::kBFloat16 : at::kFloat});
  params_->initialise(1);
  // Layers behind the feature layer stay out, as in a run.
  const std::vector<bool> trainable = model::params_in_use(model_);
  params_->set_trainable(trainable);
  gradients_ = std::make_unique<optim::FlatGradSink>(model_, trainable, optim::BucketOptions{});
  optimizer_ = std::make_unique<optim::AdamW>(*params_, *gradients_, optim::AdamWOptions{});
  slots_.resize(model_.slots.size());
  hooks_ = std::make_unique<Hooks>(*this);
  step::BuildOptions build{.micro_batches = options.micro_batches, .trainable = trainable};
  for (const optim::Bucket& bucket : gradients_->buckets())
    build.buckets.push_back({bucket.params, bucket.flat.numel()});
  program_ = step::build_step(model_, build);
  executor_ = std::make_unique<step::Executor>(model_, program_,
                                               step::Bindings{.batches = &hooks_->source,
                                                              .params = params_.get(),
                                                              .gradients = gradients_.get(),
                                                              .hooks = hooks_.get()});
}

BenchCase::~BenchCase() = default;

int64_t BenchCase::parameters() const {
  int64_t count = 0;
  for (size_t p = 0; p < model_.params.size(); ++p)
    count += params_->master(static_cast<model::ParamId>(p)).numel();
  return count;
}

void BenchCase::run_program() {
  gradients_->zero();
  report_ = executor_->run({.step = 1, .global_targets = targets_});
  loss_ = report_.loss();
}

void BenchCase::run_plain() {
  gradients_->zero();
  loss_ = 0;
  for (const model::Batch& batch : batches_) loss_ += plain_micro_batch(batch) / targets_;
  const double norm = optim::grad_norm(gradients_->buckets());
  optim::scale_grads(gradients_->buckets(), optim::clip_factor(norm, kClipNorm));
  optimizer_->update(kRates);
}

double BenchCase::plain_micro_batch(const model::Batch& batch) {
  for (const model::Block& block : model_.blocks) {
    for (const model::Step& step : block.steps) {
      const auto& segment = std::get<model::Segment>(step);
      std::vector<at::Tensor> inputs;
      for (model::Slot slot : segment.in) inputs.push_back(slots_[slot]);
      std::vector<at::Tensor> outputs = segment.forward({*params_, batch}, inputs);
      for (size_t k = 0; k < outputs.size(); ++k) slots_[segment.out[k]] = std::move(outputs[k]);
    }
  }
  std::vector<at::Tensor> leaves;
  std::vector<model::ParamId> ids;
  for (size_t p = 0; p < model_.params.size(); ++p) {
    if (!params_->trainable()[p]) continue;
    ids.push_back(static_cast<model::ParamId>(p));
    leaves.push_back(params_->get(ids.back()));
  }
  at::Tensor loss = std::move(slots_[model_.loss_slot]);
  for (at::Tensor& slot : slots_) slot.reset();
  const auto results = torch::autograd::grad(
      {loss}, leaves, {at::full({}, 1 / targets_, loss.options())}, false, false, true);
  const at::NoGradGuard no_grad;
  for (size_t k = 0; k < ids.size(); ++k) {
    if (results[k].defined()) gradients_->add(ids[k], results[k]);
  }
  return loss.item<double>();
}

}  // namespace mm::bench
