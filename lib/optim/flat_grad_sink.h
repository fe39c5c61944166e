#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lib/model/block.h"
#include "lib/optim/bucket.h"

namespace mm::optim {

/// Adds parameter gradients into flat buckets in fp32 (float64 in float64 runs). A parameter that
/// gets no contribution has gradient zero. `add` from one thread; another one may reduce buckets
/// that have had all their contributions.
class FlatGradSink final : public model::GradSink {
 public:
  /// Buckets for the trainable parameters; frozen ones take no memory.
  FlatGradSink(const model::Model& model, const std::vector<bool>& trainable,
               const BucketOptions& options);

  /// Throws InternalError for a frozen parameter or another shape. An undefined `grad` counts as a
  /// zero contribution.
  void add(model::ParamId id, const at::Tensor& grad) override;

  /// Makes all gradients zero: a step begins.
  void zero();

  const std::vector<Bucket>& buckets() const { return buckets_; }
  /// The gradient in its parameter's shape, a view; undefined for a frozen parameter.
  at::Tensor gradient(model::ParamId id) const { return views_.at(static_cast<size_t>(id)); }
  /// Calls of `add` since `zero`. A bucket may be reduced once each of its parameters has had
  /// micro-batches x segments that read it; the step program knows that statically, tests compare.
  int contributions(model::ParamId id) const { return contributions_.at(static_cast<size_t>(id)); }

 private:
  const model::Model& model_;
  std::vector<Bucket> buckets_;
  std::vector<at::Tensor> views_;
  std::vector<int> contributions_;
};

}  // namespace mm::optim
