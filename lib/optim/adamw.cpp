#include "lib/optim/adamw.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "lib/base/error.h"

namespace mm::optim {

AdamW::AdamW(ParamStore& params, const FlatGradSink& grads, const AdamWOptions& options)
    : params_(params),
      options_(options),
      exp_avg_(params.trainable().size()),
      exp_avg_sq_(params.trainable().size()),
      step_(at::zeros({}, at::kFloat)) {
  for (size_t i = 0; i < exp_avg_.size(); ++i) {
    if (!params.trainable()[i]) continue;
    const auto id = static_cast<model::ParamId>(i);
    const model::ParamSpec& spec = params.model().params[i];
    exp_avg_[i] = at::zeros_like(params.master(id));
    exp_avg_sq_[i] = at::zeros_like(params.master(id));
    auto group = std::find_if(groups_.begin(), groups_.end(), [&](const Group& g) {
      return g.part == spec.part && g.decay == spec.decay;
    });
    if (group == groups_.end())
      group = groups_.insert(group, Group{.part = spec.part, .decay = spec.decay});
    group->weights.push_back(params.master(id));
    group->grads.push_back(grads.grad(id));
    group->exp_avg.push_back(exp_avg_[i]);
    group->exp_avg_sq.push_back(exp_avg_sq_[i]);
    group->steps.push_back(step_);
  }
}

void AdamW::update(const std::map<model::Part, double>& lr) {
  const at::NoGradGuard no_grad;
  ++updates_;
  step_.fill_(static_cast<double>(updates_));
  for (Group& group : groups_) {
    const auto rate = lr.find(group.part);
    MM_CHECK(rate != lr.end(), "no learning rate for part {}", model::part_name(group.part));
    at::_fused_adamw_(group.weights, group.grads, group.exp_avg, group.exp_avg_sq,
                      /*max_exp_avg_sqs=*/{}, group.steps, rate->second, options_.beta1,
                      options_.beta2, group.decay ? options_.weight_decay : 0.0, options_.eps,
                      /*amsgrad=*/false, /*maximize=*/false);
  }
  params_.refresh_compute();
}

}  // namespace mm::optim
