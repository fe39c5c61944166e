#include "kernels/rms_norm.h"

namespace mm::kernels {

void rms_norm_forward_reference(Shape shape, const RmsNormForward<double>& p) {
  for (int64_t row = 0; row < shape.rows; ++row) {
    double squares = 0;
    for (int64_t c = 0; c < shape.cols; ++c) {
      const int64_t i = row * shape.cols + c;
      const double s = p.residual == nullptr ? p.x[i] : p.x[i] + p.residual[i];
      if (p.sum != nullptr) p.sum[i] = s;
      squares += s * s;
    }
    p.r[row] = 1 / std::sqrt(squares / static_cast<double>(shape.cols) + p.eps);
    for (int64_t c = 0; c < shape.cols; ++c) {
      const int64_t i = row * shape.cols + c;
      const double s = p.residual == nullptr ? p.x[i] : p.x[i] + p.residual[i];
      p.y[i] = p.w[c] * s * p.r[row];
    }
  }
}

void rms_norm_backward_reference(Shape shape, const RmsNormBackward<double>& p) {
  for (int64_t row = 0; row < shape.rows; ++row) {
    double mean = 0;
    for (int64_t c = 0; c < shape.cols; ++c) {
      const int64_t i = row * shape.cols + c;
      mean += p.dy[i] * p.w[c] * p.s[i] * p.r[row] / static_cast<double>(shape.cols);
    }
    for (int64_t c = 0; c < shape.cols; ++c) {
      const int64_t i = row * shape.cols + c;
      const double shat = p.s[i] * p.r[row];
      p.dx[i] = p.r[row] * (p.dy[i] * p.w[c] - shat * mean);
      if (p.d_sum != nullptr) p.dx[i] += p.d_sum[i];
      p.dw[c] += p.dy[i] * shat;
    }
  }
}

}  // namespace mm::kernels
