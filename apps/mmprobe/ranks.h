#pragma once
#include <optional>

namespace mm::mmprobe {

/// With `nproc` > 0 in a process that is no rank yet: starts this very command as so many ranks of
/// this machine and gives their exit code. Otherwise nothing: go on as a rank.
std::optional<int> launch_ranks(int nproc);

}  // namespace mm::mmprobe
