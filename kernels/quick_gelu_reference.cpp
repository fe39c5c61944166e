#include "kernels/quick_gelu.h"

namespace mm::kernels {

void quick_gelu_forward_reference(int64_t count, const double* x, double* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] / (1 + std::exp(-1.702 * x[i]));
}

void quick_gelu_backward_reference(int64_t count, const double* dy, const double* x, double* dx) {
  for (int64_t i = 0; i < count; ++i) {
    const double s = 1 / (1 + std::exp(-1.702 * x[i]));
    dx[i] = dy[i] * (s + 1.702 * x[i] * s * (1 - s));
  }
}

}  // namespace mm::kernels
