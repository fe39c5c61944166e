#pragma once
#include <functional>

#include "kernels/rms_norm.h"
#include "tests/kernels/twin_case.h"

namespace mm::kernels::test {

template <typename T>
struct RmsNormTwin {
  std::function<void(Shape, const RmsNormForward<T>&)> forward;
  std::function<void(Shape, const RmsNormBackward<T>&)> backward;  ///< adds to dw
};

/// The worst error of any result against the reference.
template <typename T>
double rms_norm_error(const RmsNormTwin<T>& twin, Shape shape, bool with_residual) {
  const int64_t n = shape.rows * shape.cols;
  const auto x = draw<T>(n, 1), residual = draw<T>(n, 2), w = draw<T>(shape.cols, 3, 0.5, 1.5),
             dy = draw<T>(n, 4), d_sum = draw<T>(n, 5);
  std::vector<double> sum(n), y(n), r(shape.rows), dx(n), dw(shape.cols);
  rms_norm_forward_reference(shape, {.x = x.data(),
                                     .residual = with_residual ? residual.data() : nullptr,
                                     .w = w.data(),
                                     .eps = 1e-5,
                                     .sum = with_residual ? sum.data() : nullptr,
                                     .y = y.data(),
                                     .r = r.data()});
  const auto tx = rounded<T>(x), tres = rounded<T>(residual), tw = rounded<T>(w),
             tdy = rounded<T>(dy), td_sum = rounded<T>(d_sum);
  std::vector<T> tsum(n), ty(n), tdx(n);
  std::vector<Acc<T>> tr(shape.rows), tdw(shape.cols);
  twin.forward(shape, {.x = tx.data(),
                       .residual = with_residual ? tres.data() : nullptr,
                       .w = tw.data(),
                       .eps = 1e-5,
                       .sum = with_residual ? tsum.data() : nullptr,
                       .y = ty.data(),
                       .r = tr.data()});
  // The backward is checked on what the twin itself summed.
  const auto s = with_residual ? widened(tsum) : x;
  rms_norm_backward_reference(shape, {.dy = dy.data(),
                                      .d_sum = with_residual ? d_sum.data() : nullptr,
                                      .s = s.data(),
                                      .w = w.data(),
                                      .r = r.data(),
                                      .dx = dx.data(),
                                      .dw = dw.data()});
  twin.backward(shape, {.dy = tdy.data(),
                        .d_sum = with_residual ? td_sum.data() : nullptr,
                        .s = with_residual ? tsum.data() : tx.data(),
                        .w = tw.data(),
                        .r = tr.data(),
                        .dx = tdx.data(),
                        .dw = tdw.data()});
  double worst = std::max({worst_error(ty, y), worst_error(tdx, dx), worst_error(tdw, dw)});
  if (with_residual) worst = std::max(worst, worst_error(tsum, sum));
  return worst;
}

}  // namespace mm::kernels::test
