#pragma once
#include "kernels/element.h"

namespace mm::kernels {

// Softmax cross entropy of a chunk of logits, one pass over the matrix for the loss and one that
// turns it into its gradient. R rows, V columns; row by row, with weight a (1 without weights) on
// the gradient, not on `loss`:
//   loss = log sum_c exp(z[c]) - z[target]
//   dz[c] = a (exp(z[c] - max) / sum - [c == target])
// The softmax is in Acc<T> after the maximum is taken off (Milakov and Gimelshein, "Online
// normalizer calculation for softmax", 2018, on the GPU). Entries of the softmax below kTinyOdds
// become 0: they would be denormals, which make the products that follow up to 50 times slower.
// Memory-bound: reads R V elements twice (from cache where a row fits), writes R V. CPU: the same
// bits for every split of the rows and instruction set; twins agree to 1e-6 in fp32.

constexpr double kTinyOdds = 1e-30;

/// exp(z - highest), 0 where it is below kTinyOdds.
template <typename A>
MM_HOST_DEVICE inline A odds_of(A z, A highest) {
  const A d = z - highest;
  return d < A(-69) ? A(0) : exponential(d);
}
/// The running maximum and sum of a row, for one pass.
template <typename A>
struct RunningOdds {
  A highest, total;
};
template <typename A>
MM_HOST_DEVICE inline RunningOdds<A> merge(RunningOdds<A> a, RunningOdds<A> b) {
  if (b.total == A(0)) return a;
  if (a.total == A(0)) return b;
  const A highest = a.highest > b.highest ? a.highest : b.highest;
  return {highest, a.total * odds_of(a.highest, highest) + b.total * odds_of(b.highest, highest)};
}

/// logits [rows, cols]; targets [rows] in [0, cols); weights [rows] or null; loss [rows]; d_logits
/// [rows, cols], null where no gradient is wanted, may be `logits`.
template <typename T>
struct CrossEntropyRows {
  const T* logits;
  const int64_t* targets;
  const Acc<T>* weights;
  Acc<T>* loss;
  T* d_logits;
};
template <typename T>
void cross_entropy_rows(Shape shape, const CrossEntropyRows<T>& p);
void cross_entropy_rows_reference(Shape shape, const CrossEntropyRows<double>& p);

// CUDA twins; conventions as in rms_norm.h.
extern "C" int mm_cross_entropy_rows_cuda_f32(const Shape&, const CrossEntropyRows<float>&,
                                              void* stream);
extern "C" int mm_cross_entropy_rows_cuda_bf16(const Shape&, const CrossEntropyRows<Bf16>&,
                                               void* stream);

}  // namespace mm::kernels
