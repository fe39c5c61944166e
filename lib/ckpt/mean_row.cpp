#include "lib/ckpt/mean_row.h"

#include <cstring>
#include <limits>

#include "lib/base/error.h"
#include "lib/ckpt/float_cast.h"

namespace mm::ckpt {
namespace {

/// Sums of the columns of a table whose elements come in row-major order.
class ColumnSums {
 public:
  explicit ColumnSums(size_t width) : sums_(width, 0.0) {}

  void add(std::span<const std::byte> part, DType dtype, const std::string& name) {
    const std::vector<std::byte> wide = cast_floats(part, dtype, DType::kF64, name);
    for (size_t at = 0; at < wide.size(); at += sizeof(double)) {
      double value = 0;
      std::memcpy(&value, wide.data() + at, sizeof(value));
      sums_[column_] += value;
      column_ = column_ + 1 == sums_.size() ? 0 : column_ + 1;
    }
  }
  std::vector<std::byte> mean(uint64_t rows, DType dtype, const std::string& name) const {
    std::vector<double> mean = sums_;
    for (double& value : mean) value /= static_cast<double>(rows);
    return cast_floats(std::as_bytes(std::span(mean)), DType::kF64, dtype, name);
  }

 private:
  std::vector<double> sums_;
  size_t column_ = 0;
};

}  // namespace

TensorSource with_mean_row(const TensorSource& table, const std::string& origin) {
  const bool rows_of_floats = table.shape.size() == 2 && table.shape[0] > 0 && table.shape[1] > 0 &&
                              is_float_dtype(table.dtype);
  if (!rows_of_floats || table.shape[0] == std::numeric_limits<uint64_t>::max())
    throw DataError("{}: {} is {} {}, expected rows of floating-point numbers", origin, table.name,
                    dtype_name(table.dtype), shape_text(table.shape));
  TensorSource grown{.name = table.name, .dtype = table.dtype, .shape = table.shape};
  ++grown.shape[0];
  grown.stream = [table](const ByteSink& sink) {
    ColumnSums sums(static_cast<size_t>(table.shape[1]));
    table.stream([&](std::span<const std::byte> part) {
      sums.add(part, table.dtype, table.name);
      sink(part);
    });
    sink(sums.mean(table.shape[0], table.dtype, table.name));
  };
  return grown;
}

}  // namespace mm::ckpt
