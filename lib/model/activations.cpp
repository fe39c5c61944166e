#include "lib/model/activations.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "kernels/gelu_tanh.h"
#include "kernels/quick_gelu.h"
#include "kernels/swiglu.h"
#include "lib/model/row_dispatch.h"

namespace mm::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

struct Swiglu : torch::autograd::Function<Swiglu> {
  static Variable forward(AutogradContext* context, const Variable& given_gate,
                          const Variable& given_up) {
    const at::Tensor gate = given_gate.contiguous(), up = given_up.contiguous();
    at::Tensor y = at::empty_like(gate);
    for_storage_of(gate, [&]<typename T>() {
      for_elements(gate.numel(), [&](int64_t begin, int64_t end) {
        kernels::swiglu_forward<T>(end - begin, in<T>(gate) + begin, in<T>(up) + begin,
                                   out<T>(y) + begin);
      });
    });
    context->save_for_backward({gate, up});
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &gate = saved[0], &up = saved[1], dy = gradients[0].contiguous();
    at::Tensor d_gate = at::empty_like(gate), d_up = at::empty_like(up);
    for_storage_of(gate, [&]<typename T>() {
      for_elements(gate.numel(), [&](int64_t begin, int64_t end) {
        kernels::swiglu_backward<T>(end - begin, {.dy = in<T>(dy) + begin,
                                                  .gate = in<T>(gate) + begin,
                                                  .up = in<T>(up) + begin,
                                                  .d_gate = out<T>(d_gate) + begin,
                                                  .d_up = out<T>(d_up) + begin});
      });
    });
    return {d_gate, d_up};
  }
};

struct QuickGeluOp {
  template <typename T>
  static void forward(int64_t count, const T* x, T* y) {
    kernels::quick_gelu_forward<T>(count, x, y);
  }
  template <typename T>
  static void backward(int64_t count, const T* dy, const T* x, T* dx) {
    kernels::quick_gelu_backward<T>(count, dy, x, dx);
  }
};

struct GeluTanhOp {
  template <typename T>
  static void forward(int64_t count, const T* x, T* y) {
    kernels::gelu_tanh_forward<T>(count, x, y);
  }
  template <typename T>
  static void backward(int64_t count, const T* dy, const T* x, T* dx) {
    kernels::gelu_tanh_backward<T>(count, dy, x, dx);
  }
};

/// One of the above; keeps x alone.
template <typename Op>
struct Activation : torch::autograd::Function<Activation<Op>> {
  static Variable forward(AutogradContext* context, const Variable& given) {
    const at::Tensor x = given.contiguous();
    at::Tensor y = at::empty_like(x);
    for_storage_of(x, [&]<typename T>() {
      for_elements(x.numel(), [&](int64_t begin, int64_t end) {
        Op::template forward<T>(end - begin, in<T>(x) + begin, out<T>(y) + begin);
      });
    });
    context->save_for_backward({x});
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const at::Tensor x = context->get_saved_variables()[0], dy = gradients[0].contiguous();
    at::Tensor dx = at::empty_like(x);
    for_storage_of(x, [&]<typename T>() {
      for_elements(x.numel(), [&](int64_t begin, int64_t end) {
        Op::template backward<T>(end - begin, in<T>(dy) + begin, in<T>(x) + begin,
                                 out<T>(dx) + begin);
      });
    });
    return {dx};
  }
};

}  // namespace

at::Tensor swiglu_reference(const at::Tensor& gate, const at::Tensor& up) {
  return at::silu(gate) * up;
}

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) {
  MM_CHECK(gate.sizes() == up.sizes(), "gate has {} elements, up {}", gate.numel(), up.numel());
  return has_row_kernel(gate) ? Swiglu::apply(gate, up) : swiglu_reference(gate, up);
}

at::Tensor quick_gelu_reference(const at::Tensor& x) { return x * at::sigmoid(x * 1.702); }

at::Tensor quick_gelu(const at::Tensor& x) {
  return has_row_kernel(x) ? Activation<QuickGeluOp>::apply(x) : quick_gelu_reference(x);
}

at::Tensor gelu_tanh(const at::Tensor& x) {
  return has_row_kernel(x) ? Activation<GeluTanhOp>::apply(x) : at::gelu(x, "tanh");
}

}  // namespace mm::model
