#include "lib/optim/lion.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>

#include "lib/base/error.h"

namespace mm::optim {

Lion::Lion(ParamStore& params, const FlatGradSink& grads, const LionOptions& options)
    : params_(params), grads_(grads), options_(options), exp_avg_(params.trainable().size()) {
  for (size_t i = 0; i < exp_avg_.size(); ++i) {
    const at::Tensor grad = grads.gradient(static_cast<model::ParamId>(i));
    MM_CHECK(params.trainable()[i] == grad.defined(), "{}: store and sink disagree",
             params.model().params[i].name);
    if (grad.defined()) exp_avg_[i] = at::zeros_like(grad);
  }
}

void Lion::update(const std::map<model::Part, double>& rates) {
  const at::NoGradGuard no_grad;
  ++update_count_;
  for (size_t i = 0; i < exp_avg_.size(); ++i) {
    if (!exp_avg_[i].defined()) continue;
    const model::ParamSpec& spec = params_.model().params[i];
    const auto rate = rates.find(spec.part);
    MM_CHECK(rate != rates.end(), "no learning rate for {}, which trains",
             model::part_name(spec.part));
    const auto id = static_cast<model::ParamId>(i);
    at::Tensor master = params_.master(id);
    const at::Tensor grad = grads_.gradient(id);
    if (spec.decay) master.mul_(1 - rate->second * options_.weight_decay);
    master.sub_((exp_avg_[i] * options_.beta1).add_(grad, 1 - options_.beta1).sign_(),
                rate->second);
    exp_avg_[i].mul_(options_.beta2).add_(grad, 1 - options_.beta2);
  }
  params_.refresh_compute();
}

std::vector<Optimizer::Moment> Lion::moments(model::ParamId id) const {
  const at::Tensor& exp_avg = exp_avg_.at(static_cast<size_t>(id));
  if (!exp_avg.defined()) return {};
  return {{"exp_avg", exp_avg}};
}

}  // namespace mm::optim
