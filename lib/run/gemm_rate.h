#pragma once
#include <ATen/core/ScalarType.h>

namespace mm::run {

/// Measured rate of a square matrix product of this process, FLOP/s (2 per multiply-add): the best
/// of several products of side `side` within about `seconds`. The denominator of model FLOPs
/// utilisation on a CPU, where no data sheet tells the truth.
double measure_gemm_rate(at::ScalarType dtype, int side = 768, double seconds = 0.3);

}  // namespace mm::run
