#include "tools/bench_dit/dit_case.h"

#include <ATen/ATen.h>

#include "lib/model/diffusion.h"
#include "lib/model/diffusion_input.h"
#include "lib/model/eager.h"
#include "lib/model/flops.h"

namespace mm::bench {
namespace {

model::DiffusionConfig dit_config(const DitShape& shape) {
  model::DiffusionConfig config;
  config.heads = shape.heads;
  config.head_size = 64;
  config.layers = shape.layers;
  config.sample_size = shape.sample_size;
  return config;
}

}  // namespace

model::Batch random_latents(int64_t pictures, int64_t height, int64_t width) {
  const int64_t patches = height * width / 4;
  auto input = std::make_shared<model::DiffusionInput>();
  input->clean = at::randn({pictures, 4, height, width});
  input->noise = at::randn_like(input->clean);
  input->times = at::arange(pictures, at::kLong).mul(997).remainder(1000).to(at::kFloat);
  input->labels = at::arange(pictures, at::kLong) * 37 % 1000;
  model::Batch batch;
  batch.sizes = {.images = pictures,
                 .patches = patches,
                 .patch_rows = pictures * patches,
                 .picture_pairs = static_cast<double>(pictures * patches * patches)};
  batch.diffusion = std::move(input);
  return batch;
}

DitCase::DitCase(const DitShape& shape) : model_(model::build_diffusion(dit_config(shape), {})) {
  params_ = std::make_unique<optim::ParamStore>(
      model_, optim::Precision{.compute = shape.bf16 ? at::kBFloat16 : at::kFloat});
  params_->initialise(1);
  const std::vector<bool> trainable = model::params_in_use(model_);
  params_->set_trainable(trainable);
  gradients_ = std::make_unique<optim::FlatGradSink>(model_, trainable, optim::BucketOptions{});
  optimizer_ = std::make_unique<optim::AdamW>(*params_, *gradients_, optim::AdamWOptions{});
}

double DitCase::gradients(const model::Batch& batch, double seed) {
  gradients_->zero();
  const auto values =
      model::eager_train({model_, *params_, params_->trainable(), *gradients_, seed}, batch);
  return values[static_cast<size_t>(model_.loss_slot)].item<double>();
}

void DitCase::update() { optimizer_->update({{model::Part::kTransformer, 1e-4}}); }

int64_t DitCase::parameters() const {
  int64_t count = 0;
  for (const model::ParamSpec& spec : model_.params) count += c10::multiply_integers(spec.shape);
  return count;
}

double DitCase::flops(const model::Batch& batch) const {
  return model::model_flops(model_, batch.sizes, params_->trainable()).total();
}

}  // namespace mm::bench
