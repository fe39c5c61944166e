#pragma once
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include "kernels/element.h"
#include "lib/base/error.h"

namespace mm::model {

// What the autograd functions over kernels/ share. Tensors handed to kernels are contiguous.

/// Whether the fused ops take `x`; if not, the plain operations do.
inline bool has_row_kernel(const at::Tensor& x) {
  const auto type = x.scalar_type();
  return x.device().is_cpu() &&
         (type == at::kDouble || type == at::kFloat || type == at::kBFloat16);
}

/// The dtype that the fused ops count in for this storage.
inline at::ScalarType accumulate_type(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

template <typename T>
const T* in(const at::Tensor& x) {
  return static_cast<const T*>(x.const_data_ptr());
}
template <typename T>
T* out(const at::Tensor& x) {
  return static_cast<T*>(x.mutable_data_ptr());
}

/// Calls f.operator()<T>() for the storage type of `x`.
template <typename F>
void for_storage_of(const at::Tensor& x, F&& f) {
  switch (x.scalar_type()) {
    case at::kDouble:
      return f.template operator()<double>();
    case at::kFloat:
      return f.template operator()<float>();
    case at::kBFloat16:
      return f.template operator()<kernels::Bf16>();
    default:
      throw InternalError("no fused op for dtype {}", c10::toString(x.scalar_type()));
  }
}

/// f(begin, end) over [0, count), in parallel where it pays.
template <typename F>
void for_elements(int64_t count, F&& f) {
  at::parallel_for(0, count, 1 << 14, f);
}

}  // namespace mm::model
