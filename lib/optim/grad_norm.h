#pragma once
#include <vector>

#include "lib/optim/flat_grad_sink.h"

namespace mm::optim {

/// L2 norm of all gradients of the buckets, each element once, summed in double in a fixed order:
/// equal on all ranks after the reductions, and in reruns. O(elements).
double grad_norm(const std::vector<Bucket>& buckets);

/// The factor that clipping to `limit` multiplies gradients by: limit / (norm + 1e-6), at most 1,
/// as torch's clip_grad_norm_. Limit 0: 1.
double clip_factor(double norm, double limit);

/// Multiplies all gradients.
void scale_grads(const std::vector<Bucket>& buckets, double factor);

}  // namespace mm::optim
