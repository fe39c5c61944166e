#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <vector>

#include "lib/optim/flat_grad_sink.h"
#include "lib/optim/optimizer.h"
#include "lib/optim/param_store.h"

namespace mm::optim {

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0;  ///< of parameters whose ParamSpec::decay is set
};

/// AdamW (Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019) on the
/// masters, by kernels::adamw, which writes bf16 compute copies in the same pass. Update t = 1, 2,
/// ... with gradient g and rate lr:
///   p <- p (1 - lr decay)
///   m <- m + (1 - beta1)(g - m),   v <- beta2 v + (1 - beta2) g^2
///   p <- p - lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
/// Moments exist for trainable parameters only. Made for the store's and sink's trainable set; make
/// a new one when that changes.
class AdamW final : public Optimizer {
 public:
  /// `params` and `grads` must outlive it. Throws InternalError when they disagree on what trains
  /// or on the dtype.
  AdamW(ParamStore& params, const FlatGradSink& grads, const AdamWOptions& options);

  /// One update of all trainable parameters from the sink's gradients, then the compute copies.
  /// `rates` holds the learning rate of every part that trains. Not calling it leaves weights,
  /// moments and count as they are, to the bit.
  void update(const std::map<model::Part, double>& rates) override;

  int64_t update_count() const override { return update_count_; }
  /// When a saved state is loaded.
  void set_update_count(int64_t count) override { update_count_ = count; }
  std::vector<Moment> moments(model::ParamId id) const override;
  /// The moments in their parameter's shape, views that may be written; undefined for frozen
  /// parameters.
  at::Tensor exp_avg(model::ParamId id) const { return exp_avg_.at(static_cast<size_t>(id)); }
  at::Tensor exp_avg_sq(model::ParamId id) const { return exp_avg_sq_.at(static_cast<size_t>(id)); }

  /// Parameters of equal rate and decay, row by row.
  struct Run {
    model::Part part;
    bool decay;
    std::vector<model::ParamId> ids;
    std::vector<at::Tensor> masters, grads, exp_avgs, exp_avg_sqs;
  };

 private:
  Run& run_of(model::Part part, bool decay);

  ParamStore& params_;
  AdamWOptions options_;
  int64_t update_count_ = 0;
  std::vector<at::Tensor> exp_avg_, exp_avg_sq_;
  std::vector<Run> runs_;
};

}  // namespace mm::optim
