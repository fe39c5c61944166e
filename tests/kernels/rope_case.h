#pragma once
#include <functional>

#include "kernels/rope.h"
#include "tests/kernels/twin_case.h"

namespace mm::kernels::test {

template <typename T>
using RopeTwin = std::function<void(RopeShape, const T*, const Acc<T>*, const Acc<T>*, T*)>;

/// Both directions: the second is the gradient.
template <typename T>
double rope_error(const RopeTwin<T>& twin, RopeShape shape) {
  const int64_t n = shape.tokens * shape.heads * 2 * shape.half;
  const auto x = draw<T>(n, 1), angle = draw<Acc<T>>(shape.tokens * shape.half, 2, 0, 6.3);
  std::vector<double> cos, sin;
  for (const double a : angle) {
    cos.push_back(static_cast<Acc<T>>(std::cos(a)));
    sin.push_back(static_cast<Acc<T>>(std::sin(a)));
  }
  const auto tx = rounded<T>(x);
  const auto tcos = rounded<Acc<T>>(cos), tsin = rounded<Acc<T>>(sin);
  double worst = 0;
  for (const int direction : {1, -1}) {
    shape.direction = direction;
    std::vector<double> y(n);
    std::vector<T> ty(n);
    rope_reference(shape, x.data(), cos.data(), sin.data(), y.data());
    twin(shape, tx.data(), tcos.data(), tsin.data(), ty.data());
    worst = std::max(worst, worst_error(ty, y));
  }
  return worst;
}

}  // namespace mm::kernels::test
