#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lib/model/block.h"

namespace mm::optim {

/// How gradients are gathered into buckets.
struct BucketOptions {
  int64_t bucket_bytes =
      4 << 20;  ///< a bucket is closed when it reaches this; one parameter may exceed it
  at::ScalarType accumulate = at::kFloat;  ///< kDouble in float64 runs
};

/// One flat gradient buffer: parameters in it, where each begins, and the elements (padding
/// included).
struct Bucket {
  std::vector<model::ParamId> params;
  std::vector<int64_t> offset;
  at::Tensor flat;
};

/// Takes parameter gradients as backwards yield them and adds them, in fp32, into flat buckets, one
/// after another in reverse program order (what the backward finishes first lies in bucket 0), each
/// of one part. A parameter without a contribution has gradient zero. Only trainable parameters
/// have storage: frozen parts cost nothing. One thread at a time per bucket.
class FlatGradSink final : public model::GradSink {
 public:
  FlatGradSink(const model::Model& model, const std::vector<bool>& trainable,
               const BucketOptions& options);

  void add(model::ParamId id, const at::Tensor& grad) override;
  /// All gradients become zero; call before a step.
  void zero();

  const std::vector<Bucket>& buckets() const { return buckets_; }
  /// View of one gradient in its bucket; undefined for frozen parameters.
  const at::Tensor& grad(model::ParamId id) const { return views_[static_cast<size_t>(id)]; }

 private:
  std::vector<Bucket> buckets_;
  std::vector<at::Tensor> views_;
};

}  // namespace mm::optim
