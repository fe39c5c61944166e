#include "kernels/adamw.h"

namespace mm::kernels {

void adamw_reference(int64_t count, const AdamWArrays<double, double>& p, const AdamWStep& s) {
  const double t = static_cast<double>(s.count);
  for (int64_t i = 0; i < count; ++i) {
    const double g = p.grad[i] * s.grad_scale;
    p.exp_avg[i] = s.beta1 * p.exp_avg[i] + (1 - s.beta1) * g;
    p.exp_avg_sq[i] = s.beta2 * p.exp_avg_sq[i] + (1 - s.beta2) * g * g;
    const double m = p.exp_avg[i] / (1 - std::pow(s.beta1, t)),
                 v = p.exp_avg_sq[i] / (1 - std::pow(s.beta2, t));
    p.master[i] -= s.rate * s.decay * p.master[i] + s.rate * m / (std::sqrt(v) + s.eps);
    if (p.copy != nullptr) p.copy[i] = p.master[i];
  }
}

}  // namespace mm::kernels
