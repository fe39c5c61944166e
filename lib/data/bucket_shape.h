#pragma once
#include <compare>
#include <cstdint>

namespace mm::data {

/// Sides of the pictures of a bucket, in pixels. 0 x 0: no bucket, as everywhere outside a bucketed
/// set.
struct BucketShape {
  uint16_t height = 0, width = 0;

  bool empty() const { return height == 0 || width == 0; }
  int64_t pixels() const { return int64_t{height} * width; }
  auto operator<=>(const BucketShape&) const = default;
};

}  // namespace mm::data
