#include "kernels/rope.h"

namespace mm::kernels {

template <typename T>
MM_CLONES void rope(RopeShape shape, const T* x, const Acc<T>* cos, const Acc<T>* sin, T* y) {
  using A = Acc<T>;
  const int64_t half = shape.half;
  const A sign = A(shape.direction);
  for (int64_t token = 0; token < shape.tokens; ++token, cos += half, sin += half) {
    for (int64_t head = 0; head < shape.heads; ++head, x += 2 * half, y += 2 * half) {
      for (int64_t i = 0; i < half; ++i) {
        const auto turned = rotate_pair<A>(load(x[i]), load(x[i + half]), cos[i], sign * sin[i]);
        store(turned.low, y[i]);
        store(turned.high, y[i + half]);
      }
    }
  }
}

#define MM_INSTANTIATE(T) \
  template void rope<T>(RopeShape, const T*, const Acc<T>*, const Acc<T>*, T*);
MM_INSTANTIATE(double)
MM_INSTANTIATE(float)
MM_INSTANTIATE(Bf16)

}  // namespace mm::kernels
