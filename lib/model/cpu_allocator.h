#pragma once
#include <cstdint>

#include "kernels/block_cache.h"

namespace mm::model {

/// Makes every CPU tensor of this process come from one kernels::BlockCache, which keeps up to
/// `max_idle_bytes` of freed memory for the next step and counts. Call it before threads make
/// tensors; tensors made earlier stay valid. The first call decides, later ones change nothing.
/// The cache lives as long as the process.
void install_cpu_allocator(int64_t max_idle_bytes);

/// What tensors take and took at most; null before install_cpu_allocator. Thread-safe.
kernels::BlockCache* cpu_allocator();

}  // namespace mm::model
