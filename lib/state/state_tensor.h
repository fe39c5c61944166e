#pragma once
#include <ATen/core/Tensor.h>

#include <span>
#include <string>
#include <vector>

#include "lib/ckpt/dtype.h"

namespace mm::state {

/// A tensor of the training state under the name it has on disk: weights by their Hugging Face
/// names, moments as "optimizer.exp_avg.<weight>" and "optimizer.exp_avg_sq.<weight>". On the CPU,
/// contiguous; fp32 or float64, or the compute dtype of a weight that is never trained.
struct StateTensor {
  std::string name;
  at::Tensor value;
};

/// The safetensors type of a tensor's elements. Throws InternalError for types that no state has.
ckpt::DType disk_dtype(const at::Tensor& tensor);

/// The elements as they stand in memory.
std::span<std::byte> tensor_bytes(const at::Tensor& tensor);

/// Which rank writes which tensor: each to the rank with the fewest bytes so far, in the given
/// order. Depends on names' order and sizes only, so all ranks agree without talking. Result[i]
/// belongs to tensors[i].
std::vector<int> assign_writers(const std::vector<StateTensor>& tensors, int ranks);

}  // namespace mm::state
