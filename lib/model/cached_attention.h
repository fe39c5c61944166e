#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "lib/model/kv_cache.h"

namespace mm::model {

/// What the new tokens ask with and store.
struct QueryKeyValue {
  at::Tensor q, k, v;
};
struct CachedLayer {
  int64_t layer = 0;   ///< of the cache
  int64_t window = 0;  ///< as in packed_attention
};

/// Causal attention of new tokens over the cache and themselves, without gradients. q [T, H, D], k
/// and v [T, G, D]: the new tokens of the n samples, packed by cu_seqlens [n + 1]. Stores k and v
/// in `at.layer` of the cache (unless it reads a shared prefix); does not advance the lengths.
/// Returns [T, H * D]. Throws InternalError if a sample would pass the capacity, or if a shared
/// prefix with what follows would pass the window.
at::Tensor cached_attention(const QueryKeyValue& fresh, const std::vector<int64_t>& cu_seqlens,
                            KvCache& cache, const CachedLayer& at);

}  // namespace mm::model
