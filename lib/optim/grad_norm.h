#pragma once
#include <array>
#include <vector>

#include "lib/optim/bucket.h"

namespace mm::optim {

/// L2 norm over all gradients, in double, in a fixed order: parameters in backward order, eight
/// running sums each, then the parts. The result depends on neither bucket size nor thread count.
/// One read of memory. NaN or Inf in, NaN or Inf out.
double grad_norm(const std::vector<Bucket>& buckets);

/// The same by model::Part; grad_norm is the root of the sum of their squares.
std::array<double, model::kPartCount> part_norms(const std::vector<Bucket>& buckets);

double total_norm(const std::array<double, model::kPartCount>& parts);

/// min(1, limit / (norm + 1e-6)); 1 when `limit` is 0 (no clipping).
double clip_factor(double norm, double limit);

/// Multiplies all gradients; a factor of 1 changes nothing and costs nothing.
void scale_grads(const std::vector<Bucket>& buckets, double factor);

}  // namespace mm::optim
