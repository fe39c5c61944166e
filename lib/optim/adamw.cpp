#include "lib/optim/adamw.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>

#include "kernels/adamw.h"
#include "lib/base/error.h"

namespace mm::optim {
namespace {

// Elements that one task updates.
constexpr int64_t kGrain = 1 << 15;

template <typename A, typename C>
void update_flat(const kernels::AdamWArrays<A, C>& p, int64_t count,
                 const kernels::AdamWStep& step) {
  const auto constants = kernels::adamw_constants<A>(step);
  at::parallel_for(0, count, kGrain, [&](int64_t begin, int64_t end) {
    kernels::adamw<A, C>(end - begin,
                         {.grad = p.grad + begin,
                          .master = p.master + begin,
                          .exp_avg = p.exp_avg + begin,
                          .exp_avg_sq = p.exp_avg_sq + begin,
                          .copy = p.copy == nullptr ? nullptr : p.copy + begin},
                         constants);
  });
}

template <typename A, typename C>
kernels::AdamWArrays<A, C> arrays(const AdamW::Run& run, size_t i, void* copy) {
  const auto at = [i](const std::vector<at::Tensor>& list) {
    return static_cast<A*>(list[i].mutable_data_ptr());
  };
  return {at(run.grads), at(run.masters), at(run.exp_avgs), at(run.exp_avg_sqs),
          static_cast<C*>(copy)};
}

// One parameter and its compute copy, which is written in the same pass where its dtype allows.
void update_one(const AdamW::Run& run, size_t i, const at::Tensor& compute,
                const kernels::AdamWStep& step) {
  const at::Tensor& master = run.masters[i];
  const int64_t count = master.numel();
  const bool shared = compute.is_alias_of(master);
  if (master.scalar_type() == at::kDouble) {
    update_flat(arrays<double, double>(run, i, nullptr), count, step);
  } else if (!shared && compute.scalar_type() == at::kBFloat16) {
    update_flat(arrays<float, kernels::Bf16>(run, i, compute.data_ptr()), count, step);
    return;
  } else {
    update_flat(arrays<float, float>(run, i, nullptr), count, step);
  }
  if (!shared) compute.detach().copy_(master);
}

}  // namespace

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
      run.ids.push_back(id);
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
  return runs_.emplace_back(Run{.part = part,
                                .decay = decay,
                                .ids = {},
                                .masters = {},
                                .grads = {},
                                .exp_avgs = {},
                                .exp_avg_sqs = {}});
}

void AdamW::update(const std::map<model::Part, double>& rates) {
  const at::NoGradGuard no_grad;
  for (const Run& run : runs_) {
    MM_CHECK(rates.contains(run.part), "no learning rate for {}, which trains",
             model::part_name(run.part));
  }
  ++update_count_;
  for (const Run& run : runs_) {
    const kernels::AdamWStep step{.rate = rates.at(run.part),
                                  .decay = run.decay ? options_.weight_decay : 0.0,
                                  .beta1 = options_.beta1,
                                  .beta2 = options_.beta2,
                                  .eps = options_.eps,
                                  .count = update_count_};
    for (size_t i = 0; i < run.ids.size(); ++i) update_one(run, i, params_.get(run.ids[i]), step);
  }
}

std::vector<Optimizer::Moment> AdamW::moments(model::ParamId id) const {
  if (!exp_avg(id).defined()) return {};
  return {{"exp_avg", exp_avg(id)}, {"exp_avg_sq", exp_avg_sq(id)}};
}

}  // namespace mm::optim
