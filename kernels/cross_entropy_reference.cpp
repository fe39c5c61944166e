#include <algorithm>

#include "kernels/cross_entropy.h"

namespace mm::kernels {

void cross_entropy_rows_reference(Shape shape, const CrossEntropyRows<double>& p) {
  for (int64_t row = 0; row < shape.rows; ++row) {
    const double* z = p.logits + row * shape.cols;
    const double weight = p.weights == nullptr ? 1 : p.weights[row];
    const double highest = *std::max_element(z, z + shape.cols);
    double total = 0;
    for (int64_t c = 0; c < shape.cols; ++c) total += std::exp(z[c] - highest);
    p.loss[row] = std::log(total) + highest - z[p.targets[row]];
    if (p.d_logits == nullptr) continue;
    double* d = p.d_logits + row * shape.cols;
    for (int64_t c = 0; c < shape.cols; ++c) {
      const double chosen = c == p.targets[row] ? 1 : 0;
      d[c] = weight * (std::exp(z[c] - highest) / total - chosen);
    }
  }
}

}  // namespace mm::kernels
