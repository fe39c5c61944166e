#pragma once
#include <ATen/core/Tensor.h>

namespace mm::model {

// Moving whole rows of a [rows, ...] tensor under autograd, without the scatter-adds that ATen's
// general backward needs.

/// x[index], `index` [n] int64 with no row twice. The gradient of a row that is not selected is
/// zero.
at::Tensor select_rows(const at::Tensor& x, const at::Tensor& index);

/// `x` with x[index[i]] = source[i]; `index` with no row twice. x's replaced rows get no gradient.
/// Both differentiable; an empty `source` is fine.
at::Tensor replace_rows(const at::Tensor& x, const at::Tensor& index, const at::Tensor& source);

/// A gather with its inverse known: out[i] = x[gather[i]], and every row r of x is at
/// out[inverse[r]]. Rows of `out` that no `inverse` points to are padding: copies whose gradient
/// must be zero or without meaning, it is dropped.
at::Tensor permute_rows(const at::Tensor& x, const at::Tensor& gather, const at::Tensor& inverse);

/// The way back: out[r] = padded[inverse[r]]; the gradient of padding rows is zero.
at::Tensor unpermute_rows(const at::Tensor& padded, const at::Tensor& gather,
                          const at::Tensor& inverse);

}  // namespace mm::model
