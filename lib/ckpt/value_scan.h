#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/ckpt/dtype.h"

namespace mm::ckpt {

/// Values that a file may hold but weights should not.
struct ValueCounts {
  uint64_t nan = 0;
  uint64_t infinite = 0;
  uint64_t bad_bool = 0;  ///< BOOL bytes other than 0 and 1
  uint64_t total() const { return nan + infinite + bad_bool; }
  ValueCounts& operator+=(const ValueCounts& other);
};

/// Counts them in packed elements of F16, BF16, F32, F64 and BOOL; other types count nothing.
/// `bytes` holds whole elements, at any alignment.
ValueCounts scan_values(DType dtype, std::span<const std::byte> bytes);

}  // namespace mm::ckpt
