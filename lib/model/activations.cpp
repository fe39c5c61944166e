#include "lib/model/activations.h"

namespace mm::model {

at::Tensor swiglu_reference(const at::Tensor& gate, const at::Tensor& up) {
  return at::silu(gate) * up;
}

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) {
  return swiglu_reference(gate, up);
}

at::Tensor quick_gelu_reference(const at::Tensor& x) { return x * at::sigmoid(x * 1.702); }

at::Tensor quick_gelu(const at::Tensor& x) { return quick_gelu_reference(x); }

}  // namespace mm::model
