#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "lib/model/block.h"

namespace mm::model {

/// The initial value of a parameter, whole, fp32: element i is a pure function of (seed, name, i),
/// so that every layout starts from the same numbers (law 1). kNormal: N(0, init_std^2);
/// kXavierUniform: +-sqrt(6 / (fan_in + fan_out)), dimensions behind the second counting in both.
/// O(elements), any thread.
at::Tensor initial_value(const ParamSpec& spec, uint64_t seed);

}  // namespace mm::model
