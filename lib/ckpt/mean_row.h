#pragma once
#include "lib/ckpt/safetensors_writer.h"

namespace mm::ckpt {

/// `table` [rows, width] with one row more: the mean of the others, computed in float64 and rounded
/// once, as lib/model/vocab_rows.h makes new rows; the others keep their bits. Streams, with one
/// row of sums. Throws DataError, naming `origin` and the tensor, for anything but rows of
/// floating-point numbers.
TensorSource with_mean_row(const TensorSource& table, const std::string& origin);

}  // namespace mm::ckpt
