#include "kernels/ada_norm.h"

namespace mm::kernels {
namespace {

// f(element, its row, its element of shift, scale or gate, its picture).
template <typename F>
void for_each_element(const PictureRows& s, F&& f) {
  for (int64_t row = 0; row < s.pictures * s.rows; ++row) {
    const int64_t picture = row / s.rows;
    for (int64_t c = 0; c < s.cols; ++c) f(row * s.cols + c, row, picture * s.stride + c, picture);
  }
}

}  // namespace

void modulated_norm_forward_reference(const PictureRows& shape,
                                      const ModulatedNormForward<double>& p) {
  const auto cols = static_cast<double>(shape.cols);
  for (int64_t row = 0; row < shape.pictures * shape.rows; ++row) {
    const double* x = p.x + row * shape.cols;
    double mean = 0, variance = 0;
    for (int64_t c = 0; c < shape.cols; ++c) mean += x[c] / cols;
    for (int64_t c = 0; c < shape.cols; ++c) variance += (x[c] - mean) * (x[c] - mean) / cols;
    p.mean[row] = mean;
    p.r[row] = 1 / std::sqrt(variance + p.eps);
  }
  for_each_element(shape, [&](int64_t i, int64_t row, int64_t m, int64_t) {
    p.y[i] = (p.x[i] - p.mean[row]) * p.r[row] * (1 + p.scale[m]) + p.shift[m];
  });
}

void modulated_norm_backward_reference(const PictureRows& shape,
                                       const ModulatedNormBackward<double>& p) {
  const auto cols = static_cast<double>(shape.cols);
  for (int64_t row = 0; row < shape.pictures * shape.rows; ++row) {
    const double* scale = p.scale + row / shape.rows * shape.stride;
    double mean_g = 0, mean_gx = 0;
    for (int64_t c = 0; c < shape.cols; ++c) {
      const int64_t i = row * shape.cols + c;
      const double g = p.dy[i] * (1 + scale[c]);
      mean_g += g / cols;
      mean_gx += g * (p.x[i] - p.mean[row]) * p.r[row] / cols;
    }
    for (int64_t c = 0; c < shape.cols; ++c) {
      const int64_t i = row * shape.cols + c;
      const double xhat = (p.x[i] - p.mean[row]) * p.r[row];
      p.dx[i] = p.r[row] * (p.dy[i] * (1 + scale[c]) - mean_g - xhat * mean_gx);
    }
  }
  for_each_element(shape, [&](int64_t i, int64_t row, int64_t, int64_t picture) {
    const int64_t sum = picture * shape.cols + i % shape.cols;
    p.dshift[sum] += p.dy[i];
    p.dscale[sum] += p.dy[i] * (p.x[i] - p.mean[row]) * p.r[row];
  });
}

void gated_add_forward_reference(const PictureRows& shape, const GatedAddForward<double>& p) {
  for_each_element(
      shape, [&](int64_t i, int64_t, int64_t m, int64_t) { p.y[i] = p.x[i] + p.gate[m] * p.f[i]; });
}

void gated_add_backward_reference(const PictureRows& shape, const GatedAddBackward<double>& p) {
  for_each_element(shape, [&](int64_t i, int64_t, int64_t m, int64_t picture) {
    p.dgate[picture * shape.cols + i % shape.cols] += p.dy[i] * p.f[i];
    p.df[i] = p.gate[m] * p.dy[i];
  });
}

}  // namespace mm::kernels
