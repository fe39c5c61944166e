#pragma once
#include <functional>

#include "kernels/adamw.h"
#include "tests/kernels/twin_case.h"

namespace mm::kernels::test {

template <typename A, typename C>
using AdamWTwin = std::function<void(int64_t, const AdamWArrays<A, C>&, const AdamWConstants<A>&)>;

/// Three updates from zero moments; errors of master, moments and copy.
template <typename A, typename C>
double adamw_error(const AdamWTwin<A, C>& twin, int64_t count) {
  auto master = draw<A>(count, 1), exp_avg = std::vector<double>(count), exp_avg_sq = exp_avg,
       copy = exp_avg;
  auto tmaster = rounded<A>(master);
  std::vector<A> texp_avg(count), texp_avg_sq(count);
  std::vector<C> tcopy(count);
  for (int64_t t = 1; t <= 3; ++t) {
    const AdamWStep step{.rate = 1e-2, .decay = 0.1, .grad_scale = 0.5, .count = t};
    const auto grad = draw<A>(count, 10 + t);
    const auto tgrad = rounded<A>(grad);
    adamw_reference(
        count, {grad.data(), master.data(), exp_avg.data(), exp_avg_sq.data(), copy.data()}, step);
    twin(count, {tgrad.data(), tmaster.data(), texp_avg.data(), texp_avg_sq.data(), tcopy.data()},
         adamw_constants<A>(step));
  }
  const double own = std::max({worst_error(tmaster, master), worst_error(texp_avg, exp_avg),
                               worst_error(texp_avg_sq, exp_avg_sq)});
  // The copy must be the rounded master, to the bit.
  const auto want = rounded<C>(widened(tmaster));
  for (int64_t i = 0; i < count; ++i)
    if (load(want[i]) != load(tcopy[i])) return INFINITY;
  return own;
}

}  // namespace mm::kernels::test
