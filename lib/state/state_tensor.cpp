#include "lib/state/state_tensor.h"

#include <algorithm>

#include "lib/base/error.h"

namespace mm::state {

ckpt::DType disk_dtype(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return ckpt::DType::kF32;
    case at::kDouble:
      return ckpt::DType::kF64;
    case at::kBFloat16:
      return ckpt::DType::kBF16;
    case at::kHalf:
      return ckpt::DType::kF16;
    case at::kLong:
      return ckpt::DType::kI64;
    default:
      throw InternalError("a tensor of type {} has no place in a checkpoint",
                          c10::toString(tensor.scalar_type()));
  }
}

std::span<std::byte> tensor_bytes(const at::Tensor& tensor) {
  MM_CHECK(tensor.is_contiguous() && tensor.is_cpu(),
           "state tensors are contiguous and on the CPU");
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

std::vector<int> assign_writers(const std::vector<StateTensor>& tensors, int ranks) {
  std::vector<size_t> load(static_cast<size_t>(ranks), 0);
  std::vector<int> writer;
  for (const StateTensor& tensor : tensors) {
    const auto least = std::min_element(load.begin(), load.end());
    *least += tensor.value.nbytes();
    writer.push_back(static_cast<int>(least - load.begin()));
  }
  return writer;
}

}  // namespace mm::state
