#pragma once
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "lib/ckpt/dtype.h"

namespace mm::ckpt {

/// F16, BF16, F32 or F64.
bool is_float_dtype(DType dtype);

/// Packed little-endian elements of one of these types as another: rounded to nearest, ties to
/// even, subnormal results kept; NaN stays NaN, infinity infinity. Widening is exact. Throws
/// DataError with `origin` for a finite value that the narrower type cannot hold. `in` holds whole
/// elements. O(elements), any thread.
std::vector<std::byte> cast_floats(std::span<const std::byte> in, DType from, DType to,
                                   std::string_view origin);

}  // namespace mm::ckpt
