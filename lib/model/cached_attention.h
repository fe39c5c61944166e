#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "lib/model/kv_cache.h"

namespace mm::model {

/// Causal attention of new tokens over the cache and themselves, without gradients. q [T, H, D], k
/// and v [T, G, D]: the new tokens of the n samples, packed by cu_seqlens [n + 1]. Stores k and v
/// in layer `layer` of the cache (unless it reads a shared prefix); does not advance the lengths.
/// Returns [T, H * D]. Throws InternalError if a sample would pass the capacity.
at::Tensor cached_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const std::vector<int64_t>& cu_seqlens, KvCache& cache, int64_t layer);

}  // namespace mm::model
