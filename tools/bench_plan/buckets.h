#pragma once
#include <cstddef>

namespace mm::bench {

/// Prints what an epoch of `pictures` web-like sizes costs on 2, 64 and 1,024 ranks, in waits for
/// pixels over an epoch without padding, fillers or waiting: buckets with dynamic batches, one
/// square, random padded batches, random buckets on each rank. Nothing is asserted.
void compare_buckets(size_t pictures);

}  // namespace mm::bench
