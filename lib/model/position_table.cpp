#include "lib/model/position_table.h"

#include <ATen/ATen.h>

#include <cmath>

#include "lib/base/error.h"

namespace mm::model {

double sincos_position(int64_t width, int64_t channel, double x, double y) {
  const int64_t half = width / 2, quarter = width / 4;
  const double place = channel < half ? x : y;
  const int64_t of_half = channel % half;
  const double frequency =
      std::pow(10000.0, -static_cast<double>(of_half % quarter) / static_cast<double>(quarter));
  return of_half < quarter ? std::sin(place * frequency) : std::cos(place * frequency);
}

at::Tensor sincos_positions(int64_t width, int64_t rows, int64_t columns, const GridScale& scale) {
  MM_CHECK(width > 0 && width % 4 == 0, "positions of width {}", width);
  const auto coordinate = [&](int64_t index, int64_t grid) {
    const double unit = scale.base > 0 ? static_cast<double>(grid) / scale.base : 1.0;
    return static_cast<double>(index) / unit / scale.scale;
  };
  at::Tensor table = at::empty({rows * columns, width}, at::kDouble);
  double* out = table.data_ptr<double>();
  for (int64_t y = 0; y < rows; ++y) {
    for (int64_t x = 0; x < columns; ++x) {
      for (int64_t c = 0; c < width; ++c)
        *out++ = sincos_position(width, c, coordinate(x, columns), coordinate(y, rows));
    }
  }
  return table;
}

at::Tensor PositionTables::get(int64_t rows, int64_t columns, const at::Tensor& like) {
  const std::scoped_lock lock(mutex_);
  at::Tensor& table = tables_[{rows, columns}];
  if (!table.defined()) table = sincos_positions(width_, rows, columns, scale_);
  return table.to(like.options());
}

at::Tensor centre_crop(const at::Tensor& table, int64_t rows, int64_t columns) {
  const auto side = std::llround(std::sqrt(static_cast<double>(table.size(1))));
  if (rows > side || columns > side) {
    throw DataError(
        "a picture of {} x {} patches, the position table has {} x {}; use smaller pictures or a "
        "model with a larger table",
        rows, columns, side, side);
  }
  return table.view({side, side, table.size(2)})
      .narrow(0, (side - rows) / 2, rows)
      .narrow(1, (side - columns) / 2, columns)
      .reshape({rows * columns, table.size(2)});
}

}  // namespace mm::model
