#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "lib/model/block.h"

namespace mm::model {

/// All parameters and gradients in memory, one tensor each: the plain ParamView and GradSink of
/// tests, tools and evaluation. One thread at a time.
class SimpleParams final : public ParamView, public GradSink {
 public:
  /// `values[i]` belongs to model.params[i], any float dtype; shapes are checked. Trainable ones
  /// become leaves that require a gradient.
  SimpleParams(const Model& model, std::vector<at::Tensor> values,
               const std::vector<bool>& trainable);
  /// Initial values drawn from `seed`, all trainable.
  static SimpleParams random(const Model& model, uint64_t seed, at::ScalarType dtype);

  at::Tensor get(ParamId id) const override { return leaves_[id]; }
  /// Adds in fp32 (float64 for float64 gradients).
  void add(ParamId id, const at::Tensor& grad) override;

  const std::vector<bool>& trainable() const { return trainable_; }
  /// The accumulated gradient; undefined if none arrived.
  const at::Tensor& grad(ParamId id) const { return gradients_[id]; }
  void clear_grads();

 private:
  std::vector<at::Tensor> leaves_, gradients_;
  std::vector<bool> trainable_;
};

/// Values of all slots after a forward, detached; undefined where nothing was written.
using SlotValues = std::vector<at::Tensor>;

/// Runs all segments in order without gradients.
SlotValues eager_forward(const Model& model, const ParamView& params, const Batch& batch,
                         KvCache* cache = nullptr);

/// The plain training step that lib/step's programs are compared with: forward block by block, then
/// backward block by block in reverse, each under its own autograd tape; segments without a
/// trainable parameter at or below them keep no tape. The loss's gradient is seeded with `seed` (1
/// / global targets). Gradients go to `sink`, a segment's parameters in the order it lists them.
/// Returns the slots (the loss is the plain sum). Only models without boundaries.
struct EagerStep {
  const Model& model;
  const ParamView& params;
  const std::vector<bool>& trainable;
  GradSink& sink;
  double seed = 1.0;
};
SlotValues eager_train(const EagerStep& step, const Batch& batch);

}  // namespace mm::model
