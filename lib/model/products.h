#pragma once
#include <ATen/core/Tensor.h>

namespace mm::model {

/// x W^T + b: x [..., in], weight [out, in], bias [out] or undefined; all of one dtype.
/// Differentiable in all three; with a frozen weight autograd keeps no x.
///
/// On a CPU that multiplies no bf16, LibTorch's bf16 product runs at a fifth of the fp32 rate
/// (docs/measurements.md). There bf16 operands are widened, multiplied in fp32 and the result is
/// rounded once, which is what bf16 units with fp32 accumulation do.
at::Tensor linear_product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

/// Whether products of this dtype are better taken in fp32 on this machine: bf16 and fp16 on a CPU
/// without bf16 multiplication.
bool widens_products(at::ScalarType dtype);

}  // namespace mm::model
