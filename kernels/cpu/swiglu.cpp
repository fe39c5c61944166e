#include "kernels/swiglu.h"

namespace mm::kernels {

template <typename T>
MM_CLONES void swiglu_forward(int64_t count, const T* gate, const T* up, T* y) {
  for (int64_t i = 0; i < count; ++i) store(swiglu_value(load(gate[i]), load(up[i])), y[i]);
}

template <typename T>
MM_CLONES void swiglu_backward(int64_t count, const SwigluBackward<T>& p) {
  using A = Acc<T>;
  const T *dy = p.dy, *gate = p.gate, *up = p.up;
  T *d_gate = p.d_gate, *d_up = p.d_up;
  for (int64_t i = 0; i < count; ++i) {
    const A d = load(dy[i]), g = load(gate[i]), u = load(up[i]);
    store(swiglu_gate_grad(d, g, u), d_gate[i]);
    store(swiglu_up_grad(d, g), d_up[i]);
  }
}

#define MM_INSTANTIATE(T)                                           \
  template void swiglu_forward<T>(int64_t, const T*, const T*, T*); \
  template void swiglu_backward<T>(int64_t, const SwigluBackward<T>&);
MM_INSTANTIATE(double)
MM_INSTANTIATE(float)
MM_INSTANTIATE(Bf16)

}  // namespace mm::kernels
