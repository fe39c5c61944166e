#include "kernels/swiglu.h"

namespace mm::kernels {

void swiglu_forward_reference(int64_t count, const double* gate, const double* up, double* y) {
  for (int64_t i = 0; i < count; ++i) y[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
}

void swiglu_backward_reference(int64_t count, const SwigluBackward<double>& p) {
  for (int64_t i = 0; i < count; ++i) {
    const double g = p.gate[i], u = p.up[i], s = 1 / (1 + std::exp(-g));
    p.d_gate[i] = p.dy[i] * u * (s + g * s * (1 - s));
    p.d_up[i] = p.dy[i] * g * s;
  }
}

}  // namespace mm::kernels
