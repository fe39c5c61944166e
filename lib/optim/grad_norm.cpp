#include "lib/optim/grad_norm.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "lib/base/error.h"

namespace mm::optim {
namespace {

// Eight sums instead of one: the additions do not wait for one another, and the order stays fixed.
template <typename T>
double sum_of_squares(const T* values, int64_t count) {
  std::array<double, 8> sums{};
  const int64_t whole = count / 8 * 8;
  for (int64_t i = 0; i < whole; i += 8) {
    for (size_t lane = 0; lane < 8; ++lane) {
      const auto value = static_cast<double>(values[i + static_cast<int64_t>(lane)]);
      sums[lane] += value * value;
    }
  }
  for (int64_t i = whole; i < count; ++i) {
    const auto value = static_cast<double>(values[i]);
    sums[static_cast<size_t>(i - whole)] += value * value;
  }
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

double sum_of_squares(const at::Tensor& flat, int64_t start, int64_t count) {
  if (flat.scalar_type() == at::kDouble)
    return sum_of_squares(flat.data_ptr<double>() + start, count);
  MM_CHECK(flat.scalar_type() == at::kFloat, "gradients are fp32 or float64, not {}",
           c10::toString(flat.scalar_type()));
  return sum_of_squares(flat.data_ptr<float>() + start, count);
}

}  // namespace

std::array<double, model::kPartCount> part_norms(const std::vector<Bucket>& buckets) {
  std::array<double, model::kPartCount> norms{};
  for (const Bucket& bucket : buckets) {
    double& sum = norms.at(static_cast<size_t>(bucket.part));
    for (size_t i = 0; i < bucket.params.size(); ++i) {
      const int64_t end = i + 1 < bucket.params.size() ? bucket.starts[i + 1] : bucket.flat.numel();
      sum += sum_of_squares(bucket.flat, bucket.starts[i], end - bucket.starts[i]);
    }
  }
  for (double& norm : norms) norm = std::sqrt(norm);
  return norms;
}

double total_norm(const std::array<double, model::kPartCount>& parts) {
  double sum = 0;
  for (double norm : parts) sum += norm * norm;
  return std::sqrt(sum);
}

double grad_norm(const std::vector<Bucket>& buckets) { return total_norm(part_norms(buckets)); }

double clip_factor(double norm, double limit) {
  if (limit <= 0) return 1.0;
  return std::min(1.0, limit / (norm + 1e-6));
}

void scale_grads(const std::vector<Bucket>& buckets, double factor) {
  if (factor == 1.0) return;
  const at::NoGradGuard no_grad;
  for (const Bucket& bucket : buckets) bucket.flat.mul_(factor);
}

}  // namespace mm::optim
