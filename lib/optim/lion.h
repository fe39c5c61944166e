#pragma once
#include "lib/optim/flat_grad_sink.h"
#include "lib/optim/optimizer.h"
#include "lib/optim/param_store.h"

namespace mm::optim {

struct LionOptions {
  double beta1 = 0.9, beta2 = 0.99;
  double weight_decay = 0;  ///< of parameters whose ParamSpec::decay is set
};

/// Lion (Chen et al., "Symbolic discovery of optimization algorithms", 2023, algorithm 2) on the
/// masters. With gradient g and rate lr:
///   p <- p (1 - lr decay) - lr sign(beta1 m + (1 - beta1) g)
///   m <- beta2 m + (1 - beta2) g
/// One moment a parameter instead of AdamW's two; rates are 3 to 10 times smaller.
class Lion final : public Optimizer {
 public:
  /// `params` and `grads` must outlive it. Throws InternalError when they disagree on what trains.
  Lion(ParamStore& params, const FlatGradSink& grads, const LionOptions& options);

  void update(const std::map<model::Part, double>& rates) override;
  int64_t update_count() const override { return update_count_; }
  void set_update_count(int64_t count) override { update_count_ = count; }
  std::vector<Moment> moments(model::ParamId id) const override;

 private:
  ParamStore& params_;
  const FlatGradSink& grads_;
  LionOptions options_;
  int64_t update_count_ = 0;
  std::vector<at::Tensor> exp_avg_;  // [params], undefined for frozen ones
};

}  // namespace mm::optim
