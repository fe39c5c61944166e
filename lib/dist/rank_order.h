#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

namespace mm::dist {

enum class Reduction { kSum, kMax };

/// Elementwise result over one tensor per rank, taken from rank 0 upwards: ((r0 + r1) + r2) + ...
/// Equal shapes and dtypes, at least one part; parts are left alone. bf16 and fp16 accumulate in
/// fp32 and are rounded once. An element's bits depend on that element's inputs alone, so cutting
/// or joining buffers changes nothing. kMax keeps NaN.
at::Tensor combine_in_rank_order(const std::vector<at::Tensor>& parts, Reduction reduction);

/// Cuts `elements` into `ranks` consecutive pieces whose sizes differ by at most one, larger ones
/// first.
std::vector<int64_t> piece_sizes(int64_t elements, int ranks);

}  // namespace mm::dist
