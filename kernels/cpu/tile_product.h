#pragma once
#include <cstdint>

namespace mm::kernels {

// Products of tiles that lie in cache, for kernels that make their operands themselves. R rows,
// C columns, K depth.

/// Columns of a panel: 64 bytes.
template <typename A>
inline constexpr int64_t kPanel = 64 / static_cast<int64_t>(sizeof(A));

template <typename A>
inline constexpr int64_t panel_multiple(int64_t columns) {
  return (columns + kPanel<A> - 1) / kPanel<A> * kPanel<A>;
}

/// A left operand [R, K]: element (r, k) at data[r * row_stride + k * depth_stride], so that a
/// transposed tile needs no copy.
template <typename A>
struct Strided {
  const A* data;
  int64_t row_stride, depth_stride;
};

/// A right operand [K, C], C a multiple of kPanel: kPanel columns after another, each panel's rows
/// adjacent. Element (k, c) at data[c / kPanel * stride + k * kPanel + c % kPanel].
template <typename A>
struct Panels {
  const A* data;
  int64_t stride;  ///< from one panel to the next, in elements
};

/// What a product is added to or, if `fresh`, replaces: [R, C] with rows `stride` apart.
template <typename A>
struct Target {
  A* data;
  int64_t stride;
  bool fresh = false;
};

struct ProductShape {
  int64_t rows, depth, columns;
};

/// c (+)= a b. Six rows by one panel (twelve where vectors have 64 bytes) are kept in registers
/// while the depth is walked, 12 multiply-adds for 8 loads. Sums run over the depth in order, so an
/// element depends on its row and column alone.
template <typename A>
void tile_product(ProductShape shape, Strided<A> a, Panels<A> b, Target<A> c);

}  // namespace mm::kernels
