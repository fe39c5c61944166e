#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lib/model/block.h"

namespace mm::optim {

/// Dtypes of a run: masters (fp32; float64 in float64 runs) and what forward and backward compute
/// with.
struct Precision {
  at::ScalarType master = at::kFloat;
  at::ScalarType compute = at::kFloat;
};

/// Owns the storage of all parameters of a model: one flat master buffer, and a flat compute copy
/// where the dtypes differ (bf16 training keeps fp32 masters, so that small updates are not rounded
/// away). Segments see leaves over the compute copy. Which parameters are trainable may change
/// between steps at no cost. Main thread only.
class ParamStore final : public model::ParamView {
 public:
  /// `model` must outlive it. Storage is zero until `initialise` or `set`.
  ParamStore(const model::Model& model, Precision precision);

  /// Every element becomes a function of (seed, parameter name, element): equal on all ranks and
  /// layouts.
  void initialise(uint64_t seed);
  /// Replaces a master (any float dtype, the declared shape). Call refresh_compute afterwards.
  void set(model::ParamId id, const at::Tensor& value);
  /// Casts the masters of trainable parameters (or all of them) into the compute copies.
  void refresh_compute(bool all = false);

  void set_trainable(const std::vector<bool>& flags);
  const std::vector<bool>& trainable() const { return trainable_; }

  at::Tensor get(model::ParamId id) const override { return leaves_[static_cast<size_t>(id)]; }
  /// The master itself; writes change it.
  const at::Tensor& master(model::ParamId id) const { return masters_[static_cast<size_t>(id)]; }
  const model::Model& model() const { return model_; }
  Precision precision() const { return precision_; }

 private:
  const model::Model& model_;
  const Precision precision_;
  std::vector<at::Tensor> masters_, compute_, leaves_;
  std::vector<bool> trainable_;
};

}  // namespace mm::optim
