#pragma once
#include <functional>

#include "kernels/ada_norm.h"
#include "tests/kernels/twin_case.h"

namespace mm::kernels::test {

template <typename T>
struct AdaNormTwin {
  std::function<void(const PictureRows&, const ModulatedNormForward<T>&)> norm_forward;
  /// Adds to dshift and dscale, as gate_backward does to dgate.
  std::function<void(const PictureRows&, const ModulatedNormBackward<T>&)> norm_backward;
  std::function<void(const PictureRows&, const GatedAddForward<T>&)> gate_forward;
  std::function<void(const PictureRows&, const GatedAddBackward<T>&)> gate_backward;
};

/// The worst error of any result of the modulated norm against the reference. Shift and scale lie
/// `stride` apart, as views into one modulation do.
template <typename T>
double modulated_norm_error(const AdaNormTwin<T>& twin, const PictureRows& s) {
  const int64_t rows = s.pictures * s.rows, n = rows * s.cols, own = s.pictures * s.cols;
  const auto x = draw<T>(n, 1, -2, 3), dy = draw<T>(n, 2),
             shift = draw<T>(s.pictures * s.stride, 3),
             scale = draw<T>(s.pictures * s.stride, 4, -0.5, 0.5);
  std::vector<double> y(n), mean(rows), r(rows), dx(n), dshift(own), dscale(own);
  modulated_norm_forward_reference(
      s, {x.data(), shift.data(), scale.data(), 1e-6, y.data(), mean.data(), r.data()});
  modulated_norm_backward_reference(s, {dy.data(), x.data(), scale.data(), mean.data(), r.data(),
                                        dx.data(), dshift.data(), dscale.data()});
  const auto tx = rounded<T>(x), tdy = rounded<T>(dy), tshift = rounded<T>(shift),
             tscale = rounded<T>(scale);
  std::vector<T> ty(n), tdx(n);
  std::vector<Acc<T>> tmean(rows), tr(rows), tdshift(own), tdscale(own);
  twin.norm_forward(
      s, {tx.data(), tshift.data(), tscale.data(), 1e-6, ty.data(), tmean.data(), tr.data()});
  twin.norm_backward(s, {tdy.data(), tx.data(), tscale.data(), tmean.data(), tr.data(), tdx.data(),
                         tdshift.data(), tdscale.data()});
  return std::max({worst_error(ty, y), worst_error(tdx, dx), worst_error(tdshift, dshift),
                   worst_error(tdscale, dscale)});
}

/// The same of the gated sum.
template <typename T>
double gated_add_error(const AdaNormTwin<T>& twin, const PictureRows& s) {
  const int64_t n = s.pictures * s.rows * s.cols, own = s.pictures * s.cols;
  const auto x = draw<T>(n, 1), f = draw<T>(n, 2), dy = draw<T>(n, 3),
             gate = draw<T>(s.pictures * s.stride, 4);
  std::vector<double> y(n), df(n), dgate(own);
  gated_add_forward_reference(s, {x.data(), gate.data(), f.data(), y.data()});
  gated_add_backward_reference(s, {dy.data(), gate.data(), f.data(), df.data(), dgate.data()});
  const auto tx = rounded<T>(x), tf = rounded<T>(f), tdy = rounded<T>(dy), tgate = rounded<T>(gate);
  std::vector<T> ty(n), tdf(n);
  std::vector<Acc<T>> tdgate(own);
  twin.gate_forward(s, {tx.data(), tgate.data(), tf.data(), ty.data()});
  twin.gate_backward(s, {tdy.data(), tgate.data(), tf.data(), tdf.data(), tdgate.data()});
  return std::max({worst_error(ty, y), worst_error(tdf, df), worst_error(tdgate, dgate)});
}

/// The worse of the two.
template <typename T>
double ada_norm_error(const AdaNormTwin<T>& twin, const PictureRows& s) {
  return std::max(modulated_norm_error(twin, s), gated_add_error(twin, s));
}

template <typename T>
AdaNormTwin<T> cpu_ada_norm() {
  return {modulated_norm_forward<T>, modulated_norm_backward<T>, gated_add_forward<T>,
          gated_add_backward<T>};
}

}  // namespace mm::kernels::test
