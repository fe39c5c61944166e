#include "kernels/adamw.h"

namespace mm::kernels {

template <typename A, typename C>
MM_CLONES void adamw(int64_t count, const AdamWArrays<A, C>& p,
                     const AdamWConstants<A>& constants) {
  const AdamWConstants<A> k = constants;
  const A* grad = p.grad;
  A *master = p.master, *exp_avg = p.exp_avg, *exp_avg_sq = p.exp_avg_sq;
  C* copy = p.copy;
  if (copy == nullptr) {
    for (int64_t i = 0; i < count; ++i)
      master[i] = adamw_element(k, grad[i], master[i], exp_avg[i], exp_avg_sq[i]);
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    const A value = adamw_element(k, grad[i], master[i], exp_avg[i], exp_avg_sq[i]);
    master[i] = value;
    store(value, copy[i]);
  }
}

template void adamw<double, double>(int64_t, const AdamWArrays<double, double>&,
                                    const AdamWConstants<double>&);
template void adamw<float, float>(int64_t, const AdamWArrays<float, float>&,
                                  const AdamWConstants<float>&);
template void adamw<float, Bf16>(int64_t, const AdamWArrays<float, Bf16>&,
                                 const AdamWConstants<float>&);

}  // namespace mm::kernels
