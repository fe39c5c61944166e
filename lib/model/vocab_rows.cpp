#include "lib/model/vocab_rows.h"

#include <ATen/ATen.h>

#include "lib/base/error.h"

namespace mm::model {

int64_t filled_rows(int64_t rows, int64_t multiple, int64_t tensor_ranks) {
  MM_CHECK(rows >= 0 && multiple > 0 && tensor_ranks > 0, "{} rows by {} on {} ranks", rows,
           multiple, tensor_ranks);
  const int64_t unit = multiple * tensor_ranks;
  return (rows + unit - 1) / unit * unit;
}

bool is_vocab_table(std::string_view parameter) {
  return parameter.ends_with("embed_tokens.weight") || parameter.ends_with("lm_head.weight");
}

at::Tensor grow_rows(const at::Tensor& table, int64_t rows) {
  const int64_t old = table.size(0);
  MM_CHECK(rows >= old && old > 0, "a table of {} rows does not grow to {}", old, rows);
  if (rows == old) return table;
  const at::Tensor mean = table.to(at::kDouble).mean(0, /*keepdim=*/true).to(table.scalar_type());
  return at::cat({table, mean.expand({rows - old, table.size(1)})}, 0);
}

}  // namespace mm::model
