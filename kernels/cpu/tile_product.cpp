#include "kernels/cpu/tile_product.h"

#include <cstring>

#include "kernels/host_device.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define MM_WIDE_VECTORS 1
#else
#define MM_WIDE_VECTORS 0
#endif

namespace mm::kernels {
namespace {

constexpr int kRest = 6;

// `bytes` wide vectors of A. An alias would lose the attribute.
template <typename A, int bytes>
struct Vector {
  typedef A type __attribute__((vector_size(bytes)));  // NOLINT(modernize-use-using)
};

/// `rows` rows of c by one panel, held in registers while the depth is walked.
template <int rows, int bytes, typename A>
[[gnu::always_inline]] inline void rows_by_panel(int64_t depth, Strided<A> a, const A* panel,
                                                 Target<A> c) {
  using V = typename Vector<A, bytes>::type;
  constexpr int kVectors = 64 / bytes, kWidth = bytes / static_cast<int>(sizeof(A));
  V sum[rows][kVectors];
#pragma GCC unroll 12
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      sum[r][v] = V{};
      if (!c.fresh) std::memcpy(&sum[r][v], c.data + r * c.stride + v * kWidth, sizeof(V));
    }
  }
  for (int64_t k = 0; k < depth; ++k) {
    V b[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v)
      std::memcpy(&b[v], panel + k * kPanel<A> + v * kWidth, sizeof(V));
#pragma GCC unroll 12
    for (int r = 0; r < rows; ++r) {
      const A factor = a.data[r * a.row_stride + k * a.depth_stride];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sum[r][v] += factor * b[v];
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v)
      std::memcpy(c.data + r * c.stride + v * kWidth, &sum[r][v], sizeof(V));
  }
}

/// All rows by one panel, `rows` at a time; the last ones by sixes, then together.
template <int rows, int bytes, typename A>
[[gnu::always_inline]] inline void all_by_panel(const ProductShape& shape, Strided<A> a,
                                                const A* panel, Target<A> c) {
  const auto advance = [&](int64_t count) {
    a.data += count * a.row_stride;
    c.data += count * c.stride;
  };
  int64_t left = shape.rows;
  for (; left >= rows; left -= rows, advance(rows))
    rows_by_panel<rows, bytes>(shape.depth, a, panel, c);
  if (rows > kRest && left >= kRest) {
    rows_by_panel<kRest, bytes>(shape.depth, a, panel, c);
    advance(kRest);
    left -= kRest;
  }
  if (left == 1) rows_by_panel<1, bytes>(shape.depth, a, panel, c);
  if (left == 2) rows_by_panel<2, bytes>(shape.depth, a, panel, c);
  if (left == 3) rows_by_panel<3, bytes>(shape.depth, a, panel, c);
  if (left == 4) rows_by_panel<4, bytes>(shape.depth, a, panel, c);
  if (left == 5) rows_by_panel<5, bytes>(shape.depth, a, panel, c);
}

template <int rows, int bytes, typename A>
[[gnu::always_inline]] inline void by_panels(const ProductShape& shape, Strided<A> a, Panels<A> b,
                                             Target<A> c) {
  for (int64_t column = 0; column < shape.columns; column += kPanel<A>) {
    all_by_panel<rows, bytes>(shape, a, b.data + column / kPanel<A> * b.stride,
                              Target<A>{c.data + column, c.stride, c.fresh});
  }
}

// 6 rows in 12 registers of 32 bytes; with 32 registers of 64 bytes, 12 rows in 12 of them.
template <typename A>
MM_CLONES void narrow_product(const ProductShape& shape, Strided<A> a, Panels<A> b, Target<A> c) {
  by_panels<kRest, 32>(shape, a, b, c);
}
#if MM_WIDE_VECTORS
template <typename A>
__attribute__((target("arch=x86-64-v4"))) void wide_product(const ProductShape& shape, Strided<A> a,
                                                            Panels<A> b, Target<A> c) {
  by_panels<2 * kRest, 64>(shape, a, b, c);
}
bool has_wide_vectors() {
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return has;
}
#endif

}  // namespace

template <typename A>
void tile_product(ProductShape shape, Strided<A> a, Panels<A> b, Target<A> c) {
#if MM_WIDE_VECTORS
  if (has_wide_vectors()) return wide_product(shape, a, b, c);
#endif
  narrow_product(shape, a, b, c);
}

template void tile_product<double>(ProductShape, Strided<double>, Panels<double>, Target<double>);
template void tile_product<float>(ProductShape, Strided<float>, Panels<float>, Target<float>);

}  // namespace mm::kernels
