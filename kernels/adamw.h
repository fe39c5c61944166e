#pragma once
#include "kernels/element.h"

namespace mm::kernels {

// AdamW (Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR 2019) on flat
// buffers, the compute copy written in the same pass. Update t = 1, 2, ... of each element with
// gradient g (scaled by `grad_scale`):
//   p <- p (1 - rate decay)
//   m <- m + (1 - beta1)(g - m),   v <- beta2 v + (1 - beta2) g^2
//   p <- p - rate / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps);   copy <- p, rounded
// Memory-bound: reads 16 and writes 12 bytes an element in fp32, and 2 for a bf16 copy. The CPU
// twin gives the same bits for every split and instruction set; CUDA may contract (1e-6).

struct AdamWStep {
  double rate = 0, decay = 0;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double grad_scale = 1;
  int64_t count = 1;  ///< t
};

/// The step's numbers in the arithmetic's type, worked out once in double.
template <typename A>
struct AdamWConstants {
  A keep, one_minus_beta1, beta2, one_minus_beta2, rate, root, eps, grad_scale;
};
template <typename A>
AdamWConstants<A> adamw_constants(const AdamWStep& s) {
  const double t = static_cast<double>(s.count);
  return {A(1 - s.rate * s.decay),
          A(1 - s.beta1),
          A(s.beta2),
          A(1 - s.beta2),
          A(s.rate / (1 - std::pow(s.beta1, t))),
          A(std::sqrt(1 - std::pow(s.beta2, t))),
          A(s.eps),
          A(s.grad_scale)};
}
/// One element; returns the new p.
template <typename A>
MM_HOST_DEVICE inline A adamw_element(const AdamWConstants<A>& k, A g, A p, A& m, A& v) {
  g = g * k.grad_scale;
  m = m + k.one_minus_beta1 * (g - m);
  v = k.beta2 * v + k.one_minus_beta2 * (g * g);
  return p * k.keep - k.rate * (m / (std::sqrt(v) / k.root + k.eps));
}

/// A: float or double; C: A or Bf16. All [count]; `copy` may be null.
template <typename A, typename C>
struct AdamWArrays {
  const A* grad;
  A *master, *exp_avg, *exp_avg_sq;
  C* copy;
};
template <typename A, typename C>
void adamw(int64_t count, const AdamWArrays<A, C>& p, const AdamWConstants<A>& constants);
void adamw_reference(int64_t count, const AdamWArrays<double, double>& p, const AdamWStep& step);

// CUDA twins; conventions as in rms_norm.h.
extern "C" int mm_adamw_cuda_f32(int64_t count, const AdamWArrays<float, float>&,
                                 const AdamWConstants<float>&, void* stream);
extern "C" int mm_adamw_cuda_bf16(int64_t count, const AdamWArrays<float, Bf16>&,
                                  const AdamWConstants<float>&, void* stream);

}  // namespace mm::kernels
