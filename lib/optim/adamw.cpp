#include "lib/optim/adamw.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>

#include "lib/base/error.h"

namespace mm::optim {

AdamW::AdamW(ParamStore& params, const FlatGradSink& grads, const AdamWOptions& options)
    : params_(params),
      options_(options),
      exp_avg_(params.trainable().size()),
      exp_avg_sq_(params.trainable().size()) {
  for (const Bucket& bucket : grads.buckets()) {
    const at::Tensor exp_avg = at::zeros_like(bucket.flat),
                     exp_avg_sq = at::zeros_like(bucket.flat);
    for (size_t i = 0; i < bucket.params.size(); ++i) {
      const model::ParamId id = bucket.params[i];
      const auto row = static_cast<size_t>(id);
      const at::Tensor master = params.master(id), grad = grads.gradient(id);
      MM_CHECK(params.trainable()[row] && master.scalar_type() == grad.scalar_type(),
               "{}: store and sink disagree", params.model().params[row].name);
      exp_avg_[row] = exp_avg.narrow(0, bucket.starts[i], grad.numel()).view(grad.sizes());
      exp_avg_sq_[row] = exp_avg_sq.narrow(0, bucket.starts[i], grad.numel()).view(grad.sizes());
      if (grad.numel() == 0) continue;
      Run& run = run_of(bucket.part, params.model().params[row].decay);
      run.masters.push_back(master);
      run.grads.push_back(grad);
      run.exp_avgs.push_back(exp_avg_[row]);
      run.exp_avg_sqs.push_back(exp_avg_sq_[row]);
    }
  }
  for (size_t row = 0; row < exp_avg_.size(); ++row) {
    MM_CHECK(params.trainable()[row] == exp_avg_[row].defined(),
             "{}: it trains but has no gradient", params.model().params[row].name);
  }
}

AdamW::Run& AdamW::run_of(model::Part part, bool decay) {
  for (Run& run : runs_) {
    if (run.part == part && run.decay == decay) return run;
  }
  return runs_.emplace_back(Run{
      .part = part, .decay = decay, .masters = {}, .grads = {}, .exp_avgs = {}, .exp_avg_sqs = {}});
}

void AdamW::update(const std::map<model::Part, double>& rates) {
  const at::NoGradGuard no_grad;
  for (const Run& run : runs_) {
    MM_CHECK(rates.contains(run.part), "no learning rate for {}, which trains",
             model::part_name(run.part));
  }
  ++update_count_;
  const at::Tensor count = at::full({}, static_cast<double>(update_count_), at::kFloat);
  for (Run& run : runs_) {
    const std::vector<at::Tensor> counts(run.masters.size(), count);
    at::_fused_adamw_(run.masters, run.grads, run.exp_avgs, run.exp_avg_sqs, /*max_exp_avg_sqs=*/{},
                      counts, rates.at(run.part), options_.beta1, options_.beta2,
                      run.decay ? options_.weight_decay : 0.0, options_.eps, /*amsgrad=*/false,
                      /*maximize=*/false);
  }
  params_.refresh_compute();
}

std::vector<Optimizer::Moment> AdamW::moments(model::ParamId id) const {
  if (!exp_avg(id).defined()) return {};
  return {{"exp_avg", exp_avg(id)}, {"exp_avg_sq", exp_avg_sq(id)}};
}

}  // namespace mm::optim
