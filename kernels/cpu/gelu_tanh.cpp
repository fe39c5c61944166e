#include "kernels/gelu_tanh.h"

namespace mm::kernels {

template <typename T>
MM_CLONES void gelu_tanh_forward(int64_t count, const T* x, T* y) {
  for (int64_t i = 0; i < count; ++i) store(gelu_tanh_value(load(x[i])), y[i]);
}

template <typename T>
MM_CLONES void gelu_tanh_backward(int64_t count, const T* dy, const T* x, T* dx) {
  for (int64_t i = 0; i < count; ++i) store(gelu_tanh_grad(load(dy[i]), load(x[i])), dx[i]);
}

#define MM_INSTANTIATE(T)                                    \
  template void gelu_tanh_forward<T>(int64_t, const T*, T*); \
  template void gelu_tanh_backward<T>(int64_t, const T*, const T*, T*);
MM_INSTANTIATE(double)
MM_INSTANTIATE(float)
MM_INSTANTIATE(Bf16)

}  // namespace mm::kernels
