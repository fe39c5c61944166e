#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "lib/base/random.h"
#include "lib/model/block.h"

namespace mm::model {

/// A parameter's initial values (law 1): element i of the full tensor is a function of (seed, name,
/// i) alone, never of rank, layout or dtype. Slices of any cut therefore join to the same tensor,
/// copies on all ranks are bit-equal, and the spread of fan-based initialisers comes from the full
/// shape.
///   kNormal         init_std * N(0, 1)
///   kXavierUniform  U(-a, a), a = sqrt(6 / (fan_in + fan_out)); shape [out, in, ...], what follows
///   `in` multiplies both fans
///   kFanInUniform   U(-a, a), a = 1 / sqrt(fan_in): the default of linear layers in torch, and of
///   the first matrix of a low-rank pair
///   kXavierMatrix   the same with fan_in = all dimensions but the first, fan_out = the first
///   kSincosGrid     element [0, row * side + column, channel] of the sines and cosines of
///   lib/model/position_table.h at (column, row) * init_std; shape [1, side * side, width]
///   kZeros, kOnes
class InitialDraw {
 public:
  /// Throws InternalError for uniform draws with fewer than two dimensions and for a grid that is
  /// not square.
  InitialDraw(const ParamSpec& spec, uint64_t seed);

  /// `element`: row-major index into the full tensor. Thread-safe.
  double at(int64_t element) const;

  /// The whole tensor, fp32.
  at::Tensor whole() const;
  /// Writes the whole tensor to `out` (the full shape, contiguous, fp32 or float64), rounding once;
  /// on all cores.
  void fill(at::Tensor out) const;
  /// Rows `start` to `start + length` along `dim`, as a rank of a cut holds them; contiguous,
  /// `dtype` fp32 or float64.
  at::Tensor slice(int64_t dim, int64_t start, int64_t length, at::ScalarType dtype) const;

 private:
  const ParamSpec& spec_;
  Philox stream_;
  double bound_ = 0;       ///< a of the uniform draws
  int64_t grid_side_ = 0;  ///< of kSincosGrid
};

}  // namespace mm::model
