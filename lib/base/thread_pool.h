#pragma once
#include <cstddef>
#include <functional>

namespace mm {

/// Runs body(i) for i in [0, count) on `threads` threads (0: all cores); returns when all ran. The
/// first exception stops the hand-out of further indices and is rethrown. Results must not depend
/// on which thread ran what.
void parallel_for(size_t count, int threads, const std::function<void(size_t)>& body);

/// Cores this process may use (affinity mask), at least 1.
int usable_cores();

}  // namespace mm
