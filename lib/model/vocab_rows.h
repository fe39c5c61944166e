#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

namespace mm::model {

/// Rows of a vocabulary table: ceil(rows / m) * m with m = multiple * tensor_ranks, so that each
/// rank holds a multiple (field case C49). 32,002 by 64: 32,064; 50,257 by 128: 50,304, on two
/// ranks 50,432; 151,936 by 128 on two ranks: 152,064.
int64_t filled_rows(int64_t rows, int64_t multiple, int64_t tensor_ranks = 1);

/// The embedding table or the output head, by its name.
bool is_vocab_table(std::string_view parameter);

/// `table` [old, width] with rows up to `rows`: the new ones are the mean of the old ones (computed
/// in float64), so that a new token is neither random nor the copy of a word; old rows keep their
/// bits. Throws InternalError if `rows` < old.
at::Tensor grow_rows(const at::Tensor& table, int64_t rows);

}  // namespace mm::model
