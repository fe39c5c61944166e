#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lib/optim/flat_grad_sink.h"
#include "lib/optim/param_store.h"

namespace mm::optim {

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0;  ///< decoupled; only tensors that ParamSpec::decay marks
};

/// AdamW (Loshchilov and Hutter 2019, algorithm 2, with torch's conventions): w -= lr * decay * w
/// first, then w -= lr * m^ / (sqrt(v^) + eps), m^ and v^ corrected for their start at zero by the
/// update count. On fp32 masters (float64 in float64 runs) by ATen's fused kernel. State exists for
/// trainable parameters alone. Main thread only.
class AdamW {
 public:
  /// State for what is trainable in `params` now; both must outlive it.
  AdamW(ParamStore& params, const FlatGradSink& grads, const AdamWOptions& options);

  /// One update; `lr[part]` is the rate of each part that is trained. Compute copies are refreshed.
  void update(const std::map<model::Part, double>& lr);

  /// Updates done, for bias corrections; saved and restored with the moments.
  int64_t update_count() const { return updates_; }
  void set_update_count(int64_t updates) { updates_ = updates; }

  /// Moments of a trainable parameter: read to save, written to load.
  const at::Tensor& exp_avg(model::ParamId id) const { return exp_avg_[static_cast<size_t>(id)]; }
  const at::Tensor& exp_avg_sq(model::ParamId id) const {
    return exp_avg_sq_[static_cast<size_t>(id)];
  }

 private:
  /// Parameters of one part and one decay rule: one call of the fused kernel.
  struct Group {
    model::Part part;
    bool decay;
    std::vector<at::Tensor> weights, grads, exp_avg, exp_avg_sq, steps;
  };

  ParamStore& params_;
  const AdamWOptions options_;
  std::vector<Group> groups_;
  std::vector<at::Tensor> exp_avg_, exp_avg_sq_;
  at::Tensor step_;  ///< the update count as the kernel wants it, shared by all parameters
  int64_t updates_ = 0;
};

}  // namespace mm::optim
