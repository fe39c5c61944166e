#pragma once
#include <cstdint>

#include "lib/dist/group.h"

namespace mm::step {

/// Compares the program's hash over the group before the first step. Collective. Throws UsageError
/// on every rank, naming the ranks that differ from rank 0, unless all are equal: they were started
/// with another recipe, data set or build.
void verify_same_program(dist::Group& group, uint64_t hash);

}  // namespace mm::step
