#include "tests/step/toy_trainer.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>

namespace mm::step::toy {

Store::Store(std::vector<at::Tensor> weights, const std::vector<bool>& trainable,
             std::vector<BucketRow> buckets)
    : rows_(std::move(buckets)), gradients_(weights.size()) {
  for (size_t p = 0; p < weights.size(); ++p) {
    leaves_.push_back(weights[p].detach().clone().set_requires_grad(trainable.at(p)));
  }
  for (const BucketRow& row : rows_) {
    buckets_.push_back(at::zeros({row.elements}, at::kDouble));
    momentum.push_back(at::zeros({row.elements}, at::kDouble));
    int64_t offset = 0;
    for (model::ParamId id : row.params) {
      gradients_[id] =
          buckets_.back().narrow(0, offset, leaves_[id].numel()).view(leaves_[id].sizes());
      offset += leaves_[id].numel();
    }
  }
}

void Store::add(model::ParamId id, const at::Tensor& grad) { gradients_.at(id).add_(grad); }

GradNorm Store::norm() {
  double sum = 0;
  for (const at::Tensor& bucket : buckets_) sum += bucket.square().sum().item<double>();
  return {.total = std::sqrt(sum), .parts = {}};
}

void Store::clip(double norm) {
  if (norm <= clip_limit) return;
  for (at::Tensor& bucket : buckets_) bucket.mul_(clip_limit / norm);
}

bool Store::update(const StepInput& input, double) {
  if (input.global_targets == 0) return false;
  for (size_t b = 0; b < rows_.size(); ++b) {
    momentum[b].mul_(0.9).add_(buckets_[b]);
    int64_t offset = 0;
    for (model::ParamId id : rows_[b].params) {
      const int64_t count = leaves_[id].numel();
      leaves_[id].sub_(momentum[b].narrow(0, offset, count).view(leaves_[id].sizes()),
                       learning_rate);
      offset += count;
    }
  }
  ++updates;
  return true;
}

void Store::zero_gradients() {
  for (at::Tensor& bucket : buckets_) bucket.zero_();
}

std::vector<bool> all_but(const model::Model& model, const std::vector<model::ParamId>& frozen) {
  std::vector<bool> trainable(model.params.size(), true);
  for (model::ParamId id : frozen) trainable.at(id) = false;
  return trainable;
}

std::vector<BucketRow> make_buckets(const model::Model& model, const std::vector<bool>& trainable,
                                    int per_bucket) {
  std::vector<BucketRow> buckets;
  for (int p = static_cast<int>(model.params.size()) - 1; p >= 0; --p) {
    if (!trainable[p]) continue;
    if (buckets.empty() || static_cast<int>(buckets.back().params.size()) == per_bucket)
      buckets.emplace_back();
    int64_t elements = 1;
    for (int64_t extent : model.params[p].shape) elements *= extent;
    buckets.back().params.push_back(p);
    buckets.back().elements += elements;
  }
  return buckets;
}

double count_targets(const std::vector<model::Batch>& batches) {
  double count = 0;
  for (const model::Batch& batch : batches) count += static_cast<double>(batch.sizes.targets);
  return count;
}

Rank::Rank(const model::Model& model, const BuildOptions& options, std::vector<at::Tensor> weights,
           std::vector<model::Batch> batches, dist::Group* group)
    : program(build_step(model, options)),
      store(std::move(weights), options.trainable, options.buckets),
      source(std::move(batches)) {
  executor = std::make_unique<Executor>(model, program,
                                        Bindings{.batches = &source,
                                                 .params = &store,
                                                 .gradients = &store,
                                                 .buckets = &store,
                                                 .hooks = &store,
                                                 .data = group});
}

Reference plain_loop(const model::Model& model, const std::vector<at::Tensor>& weights,
                     const std::vector<bool>& trainable, const std::vector<model::Batch>& batches) {
  const Store leaves(weights, trainable, {});
  at::Tensor total = at::zeros({}, at::kDouble);
  for (const model::Batch& batch : batches) {
    std::vector<at::Tensor> slots(model.slots.size());
    for (const model::Block& block : model.blocks) {
      for (const model::Step& step : block.steps) {
        const auto& segment = std::get<model::Segment>(step);
        std::vector<at::Tensor> inputs;
        for (model::Slot slot : segment.in) inputs.push_back(slots[slot]);
        std::vector<at::Tensor> outputs = segment.forward({leaves, batch}, inputs);
        for (size_t k = 0; k < outputs.size(); ++k) slots[segment.out[k]] = outputs[k];
      }
    }
    total = total + slots[model.loss_slot];
  }
  Reference result{total.item<double>(), std::vector<at::Tensor>(weights.size())};
  std::vector<at::Tensor> trained;
  for (size_t p = 0; p < weights.size(); ++p) {
    if (trainable[p]) trained.push_back(leaves.get(static_cast<int>(p)));
  }
  if (trained.empty()) return result;
  const auto gradients = torch::autograd::grad({total / std::max(1.0, count_targets(batches))},
                                               trained, {}, false, false, true);
  for (size_t p = 0, next = 0; p < weights.size(); ++p) {
    if (!trainable[p]) continue;
    const at::Tensor& gradient = gradients[next++];
    result.gradients[p] = gradient.defined() ? gradient : at::zeros_like(weights[p]);
  }
  return result;
}

double difference(const Store& store, const Reference& reference) {
  double worst = 0;
  for (size_t p = 0; p < reference.gradients.size(); ++p) {
    const at::Tensor mine = store.gradient(static_cast<int>(p)), theirs = reference.gradients[p];
    if (mine.defined() != theirs.defined()) return 1e300;
    if (mine.defined()) worst = std::max(worst, (mine - theirs).abs().max().item<double>());
  }
  return worst;
}

}  // namespace mm::step::toy
