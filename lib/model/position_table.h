#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace mm::model {

/// Fixed two-dimensional positions (MAE and DiT's order): the first half of the channels is of the
/// column x, the second of the row y; each half sines, then cosines, frequency i is 10000^(-i /
/// (width / 4)). `width` is a multiple of 4. Returns channel `channel` at the point.
double sincos_position(int64_t width, int64_t channel, double x, double y);

/// Where a grid's points lie: coordinate = index / (grid / base) / scale along each axis, so that a
/// picture of any size spans `base`.
struct GridScale {
  double base = 0;  ///< 0: coordinate = index / scale
  double scale = 1;
};

/// [rows * columns, width] float64, in raster order.
at::Tensor sincos_positions(int64_t width, int64_t rows, int64_t columns, const GridScale& scale);

/// The tables of the sizes that a run meets, each made once. Thread-safe.
class PositionTables {
 public:
  PositionTables(int64_t width, const GridScale& scale) : width_(width), scale_(scale) {}
  /// As sincos_positions, in the dtype and on the device of `like`.
  at::Tensor get(int64_t rows, int64_t columns, const at::Tensor& like);

 private:
  int64_t width_;
  GridScale scale_;
  std::mutex mutex_;
  std::map<std::pair<int64_t, int64_t>, at::Tensor> tables_;
};

/// The middle [rows * columns, width] of a stored square table [1, side * side, width] (SD3).
/// Throws DataError when the table is smaller.
at::Tensor centre_crop(const at::Tensor& table, int64_t rows, int64_t columns);

}  // namespace mm::model
