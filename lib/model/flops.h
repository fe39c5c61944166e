#pragma once
#include <vector>

#include "lib/model/block.h"

namespace mm::model {

/// FLOPs of one micro-batch, 2 per multiply-add: products with weights and attention only, for real
/// tokens and pictures (padding and recompute count in neither). The head counts target rows only,
/// since no others are multiplied. Attention counts the allowed query-key pairs.
struct ModelFlops {
  double forward = 0;
  double backward = 0;
  double total() const { return forward + backward; }
};

/// Sums the segments' costs. Backward: a product costs its forward once for the gradient of its
/// input, if something below is trained, and once for that of its weights, if they are trained;
/// attention and trained adapters cost 2x where any gradient passes; a frozen weight below an
/// adapter costs no gradient of its own. Frozen prefixes cost nothing.
ModelFlops model_flops(const Model& model, const Sizes& sizes, const std::vector<bool>& trainable);

/// Sizes of one micro-batch, summed field by field over several (patches stay).
Sizes add_sizes(const Sizes& a, const Sizes& b);

}  // namespace mm::model
