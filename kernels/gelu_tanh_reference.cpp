#include "kernels/gelu_tanh.h"

namespace mm::kernels {
namespace {

const double kRoot = std::sqrt(2 / std::acos(-1.0));

double tanh_of(double x) { return std::tanh(kRoot * (x + 0.044715 * x * x * x)); }

}  // namespace

void gelu_tanh_forward_reference(int64_t count, const double* x, double* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = 0.5 * x[i] * (1 + tanh_of(x[i]));
}

void gelu_tanh_backward_reference(int64_t count, const double* dy, const double* x, double* dx) {
  for (int64_t i = 0; i < count; ++i) {
    const double t = tanh_of(x[i]), inner = kRoot * (1 + 3 * 0.044715 * x[i] * x[i]);
    dx[i] = dy[i] * (0.5 * (1 + t) + 0.5 * x[i] * (1 - t * t) * inner);
  }
}

}  // namespace mm::kernels
