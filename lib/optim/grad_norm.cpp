#include "lib/optim/grad_norm.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace mm::optim {
namespace {

/// Eight partial sums, added in one order: as fast as memory and the same bits for any thread
/// count.
template <typename T>
double sum_of_squares(const T* values, int64_t count) {
  double partial[8] = {};
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (int k = 0; k < 8; ++k)
      partial[k] += static_cast<double>(values[i + k]) * static_cast<double>(values[i + k]);
  }
  for (; i < count; ++i)
    partial[0] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  double sum = 0;
  for (double p : partial) sum += p;
  return sum;
}

}  // namespace

double grad_norm(const std::vector<Bucket>& buckets) {
  double sum = 0;
  for (const Bucket& bucket : buckets) {
    const at::Tensor& flat = bucket.flat;
    sum += flat.scalar_type() == at::kDouble
               ? sum_of_squares(flat.const_data_ptr<double>(), flat.numel())
               : sum_of_squares(flat.const_data_ptr<float>(), flat.numel());
  }
  return std::sqrt(sum);
}

double clip_factor(double norm, double limit) {
  return limit > 0 ? std::min(1.0, limit / (norm + 1e-6)) : 1.0;
}

void scale_grads(const std::vector<Bucket>& buckets, double factor) {
  const at::NoGradGuard no_grad;
  for (const Bucket& bucket : buckets) bucket.flat.mul_(factor);
}

}  // namespace mm::optim
