#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lib/model/block.h"

namespace mm::optim {

struct BucketOptions {
  /// A bucket is closed when it has at least this many bytes; a parameter is never cut.
  int64_t bucket_bytes = int64_t{25} << 20;
  at::ScalarType accumulate = at::kFloat;  ///< fp32, or float64 in float64 runs
};

/// Gradients of some parameters of one part, one after another in one flat buffer, so that one call
/// reduces them.
struct Bucket {
  model::Part part = model::Part::kLanguage;
  std::vector<model::ParamId> params;
  std::vector<int64_t> starts;  ///< of each parameter in `flat`, in elements
  at::Tensor flat;              ///< [elements]
};

/// Trainable parameters in the order in which a backward finishes them: by their first use in the
/// program, last block first. Parameters that no segment reads come at the end.
std::vector<model::ParamId> backward_order(const model::Model& model,
                                           const std::vector<bool>& trainable);

/// Cuts `backward_order` into buckets, also where the part changes: the first ones are complete
/// while the backward still runs. Buffers are allocated, not written. A pure function of its
/// arguments, equal on all ranks.
std::vector<Bucket> make_buckets(const model::Model& model, const std::vector<bool>& trainable,
                                 const BucketOptions& options);

}  // namespace mm::optim
