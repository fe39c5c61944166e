#include "kernels/rope.h"

namespace mm::kernels {

void rope_reference(RopeShape shape, const double* x, const double* cos, const double* sin,
                    double* y) {
  for (int64_t token = 0; token < shape.tokens; ++token) {
    for (int64_t head = 0; head < shape.heads; ++head) {
      const int64_t at = (token * shape.heads + head) * 2 * shape.half;
      for (int64_t i = 0; i < shape.half; ++i) {
        const double a = x[at + i], b = x[at + shape.half + i];
        const double c = cos[token * shape.half + i],
                     s = shape.direction * sin[token * shape.half + i];
        y[at + i] = a * c - b * s;
        y[at + shape.half + i] = b * c + a * s;
      }
    }
  }
}

}  // namespace mm::kernels
