#include "tools/bench_llava/training_state.h"

#include <ATen/core/Tensor.h>

namespace mm::bench {

TrainingState::TrainingState(const model::Model& model, const std::vector<bool>& trainable,
                             at::ScalarType dtype, bool optimizer)
    : dtype_(dtype) {
  if (optimizer) {
    store_ = std::make_unique<optim::ParamStore>(model, optim::Precision{.compute = dtype});
    store_->initialise(1);
    store_->set_trainable(trainable);
    gradients_ = std::make_unique<optim::FlatGradSink>(model, trainable, optim::BucketOptions{});
    optimizer_ = std::make_unique<optim::AdamW>(*store_, *gradients_, optim::AdamWOptions{});
    return;
  }
  std::vector<at::Tensor> values;
  {
    const model::SimpleParams random = model::SimpleParams::random(model, 1, dtype);
    for (size_t i = 0; i < model.params.size(); ++i)
      values.push_back(random.get(static_cast<int>(i)).detach());
  }
  simple_ = std::make_unique<model::SimpleParams>(model, std::move(values), trainable);
}

const model::ParamView& TrainingState::params() const {
  if (store_) return *store_;
  return *simple_;
}

model::GradSink& TrainingState::sink() {
  if (gradients_) return *gradients_;
  return *simple_;
}

void TrainingState::clear_gradients() {
  if (gradients_) return gradients_->zero();
  simple_->clear_grads();
}

void TrainingState::update() {
  if (!optimizer_) return;
  optimizer_->update({{model::Part::kVision, 1e-5},
                      {model::Part::kProjector, 1e-5},
                      {model::Part::kLanguage, 1e-5}});
}

std::string TrainingState::bytes_per_parameter() const {
  const bool bf16 = dtype_ == at::kBFloat16;
  std::string text = bf16 ? "weight 2" : "weight 4";
  if (optimizer_ && bf16) text += " + master 4";
  text += " + gradient 4";
  return optimizer_ ? text + " + moments 8" : text;
}

}  // namespace mm::bench
