#include "lib/dist/rank_order.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/maximum.h>

#include "lib/base/error.h"

namespace mm::dist {

at::Tensor combine_in_rank_order(const std::vector<at::Tensor>& parts, Reduction reduction) {
  MM_CHECK(!parts.empty(), "a reduction needs at least one part");
  const at::NoGradGuard no_grad;
  const at::ScalarType dtype = parts[0].scalar_type();
  if (reduction == Reduction::kMax) {
    at::Tensor result = parts[0].clone();
    for (size_t r = 1; r < parts.size(); ++r) result = at::maximum(result, parts[r]);
    return result;
  }
  const bool half = dtype == at::kBFloat16 || dtype == at::kHalf;
  if (parts.size() == 1) return parts[0].clone();
  at::Tensor sum = half ? parts[0].to(at::kFloat).add_(parts[1]) : parts[0].add(parts[1]);
  for (size_t r = 2; r < parts.size(); ++r) sum.add_(parts[r]);
  return sum.to(dtype);
}

std::vector<int64_t> piece_sizes(int64_t elements, int ranks) {
  std::vector<int64_t> sizes(static_cast<size_t>(ranks), elements / ranks);
  for (int64_t r = 0; r < elements % ranks; ++r) ++sizes[static_cast<size_t>(r)];
  return sizes;
}

}  // namespace mm::dist
