#include "lib/run/gemm_rate.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>

namespace mm::run {

double measure_gemm_rate(at::ScalarType dtype, int side, double seconds) {
  const at::NoGradGuard no_grad;
  using Clock = std::chrono::steady_clock;
  const at::Tensor a = at::ones({side, side}, dtype), b = at::ones({side, side}, dtype);
  at::Tensor out = at::matmul(a, b);  // warm-up: thread pool, packing buffers
  const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                   std::chrono::duration<double>(seconds));
  double best_s = 1e9;
  for (int runs = 0; runs < 3 || Clock::now() < end; ++runs) {
    const Clock::time_point start = Clock::now();
    at::matmul_out(out, a, b);
    best_s = std::min(best_s, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return 2.0 * side * side * side / best_s;
}

}  // namespace mm::run
