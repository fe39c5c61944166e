#include "lib/model/row_kernels.h"

#include <bit>
#include <cmath>

#include "kernels/bf16_bits.h"

// One binary, three instruction sets. Compiled with -O3 -ffp-contract=off, so that all give the
// same bits.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define MM_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define MM_CLONES
#endif

namespace mm::model::row_kernels {
namespace {

// Partial sums that a compiler may keep in vector registers without reordering a sum of its own.
constexpr int kLanes = 16;

inline double load(double x) { return x; }
inline float load(float x) { return x; }
inline float load(Bf16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }
inline void store(double v, double& to) { to = v; }
inline void store(float v, float& to) { to = v; }
inline void store(float v, Bf16& to) { to.bits = kernels::bf16_bits(v); }

inline double exponential(double x) { return std::exp(x); }

// e^x = 2^n e^r, |r| <= ln2 / 2, e^r by its series to r^7: the first term left out is below 6e-9, a
// tenth of an ulp. n comes from adding 1.5 * 2^23, which leaves it in the low bits of the sum.
// Branch-free, so loops over it become vector code.
inline float exponential(float x) {
  x = x < -87.0f ? -87.0f : (x > 88.0f ? 88.0f : x);
  const float shifted = x * 1.44269504f + 12582912.0f;
  const float n = shifted - 12582912.0f;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.0f / 5040.0f;
  p = p * r + 1.0f / 720.0f;
  p = p * r + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const uint32_t exponent = std::bit_cast<uint32_t>(shifted) << 23;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(p) + exponent);
}

template <typename A>
inline A sigmoid(A x) {
  return A(1) / (A(1) + exponential(-x));
}

template <typename A>
inline A sum_lanes(const A* lanes) {
  A sum = 0;
  for (int l = 0; l < kLanes; ++l) sum += lanes[l];
  return sum;
}

}  // namespace

template <typename T>
MM_CLONES void rms_norm_forward(Shape shape, const T* x, const T* w, double eps, T* y, Acc<T>* r) {
  using A = Acc<T>;
  const int64_t cols = shape.cols, whole = cols / kLanes * kLanes;
  for (int64_t row = 0; row < shape.rows; ++row, x += cols, y += cols) {
    A lanes[kLanes] = {};
    for (int64_t c = 0; c < whole; c += kLanes) {
      for (int l = 0; l < kLanes; ++l) lanes[l] += load(x[c + l]) * load(x[c + l]);
    }
    for (int64_t c = whole; c < cols; ++c) lanes[c - whole] += load(x[c]) * load(x[c]);
    const A scale = A(1) / std::sqrt(sum_lanes(lanes) / A(cols) + A(eps));
    r[row] = scale;
    for (int64_t c = 0; c < cols; ++c) store(load(x[c]) * scale * load(w[c]), y[c]);
  }
}

template <typename T>
MM_CLONES void rms_norm_backward(Shape shape, const RmsNormBackward<T>& p) {
  using A = Acc<T>;
  const int64_t cols = shape.cols, whole = cols / kLanes * kLanes;
  const T* w = p.w;
  A* dw = p.dw;
  for (int64_t row = 0; row < shape.rows; ++row) {
    const T *x = p.x + row * cols, *dy = p.dy + row * cols;
    T* dx = p.dx + row * cols;
    const A scale = p.r[row];
    A lanes[kLanes] = {};
    for (int64_t c = 0; c < whole; c += kLanes) {
      for (int l = 0; l < kLanes; ++l)
        lanes[l] += load(dy[c + l]) * load(w[c + l]) * load(x[c + l]);
    }
    for (int64_t c = whole; c < cols; ++c)
      lanes[c - whole] += load(dy[c]) * load(w[c]) * load(x[c]);
    const A mean = sum_lanes(lanes) * scale / A(cols);
    for (int64_t c = 0; c < cols; ++c) {
      const A xhat = load(x[c]) * scale, g = load(dy[c]);
      dw[c] += g * xhat;
      store(scale * (g * load(w[c]) - xhat * mean), dx[c]);
    }
  }
}

template <typename T>
MM_CLONES void swiglu_forward(int64_t count, const T* gate, const T* up, T* y) {
  using A = Acc<T>;
  for (int64_t i = 0; i < count; ++i) {
    const A g = load(gate[i]);
    store(g * sigmoid<A>(g) * load(up[i]), y[i]);
  }
}

template <typename T>
MM_CLONES void swiglu_backward(int64_t count, const SwigluBackward<T>& p) {
  using A = Acc<T>;
  const T *dy = p.dy, *gate = p.gate, *up = p.up;
  T *d_gate = p.d_gate, *d_up = p.d_up;
  for (int64_t i = 0; i < count; ++i) {
    const A g = load(gate[i]), d = load(dy[i]), s = sigmoid<A>(g);
    store(d * load(up[i]) * s * (A(1) + g * (A(1) - s)), d_gate[i]);
    store(d * g * s, d_up[i]);
  }
}

template <typename T>
MM_CLONES void quick_gelu_forward(int64_t count, const T* x, T* y) {
  using A = Acc<T>;
  for (int64_t i = 0; i < count; ++i) {
    const A v = load(x[i]);
    store(v * sigmoid<A>(A(1.702) * v), y[i]);
  }
}

template <typename T>
MM_CLONES void quick_gelu_backward(int64_t count, const T* dy, const T* x, T* dx) {
  using A = Acc<T>;
  for (int64_t i = 0; i < count; ++i) {
    const A v = A(1.702) * load(x[i]), s = sigmoid<A>(v);
    store(load(dy[i]) * s * (A(1) + v * (A(1) - s)), dx[i]);
  }
}

template <typename T>
MM_CLONES void rope(RopeShape shape, const T* x, const Acc<T>* cos, const Acc<T>* sin, T* y) {
  using A = Acc<T>;
  const int64_t half = shape.half;
  const A sign = A(shape.direction);
  for (int64_t token = 0; token < shape.tokens; ++token, cos += half, sin += half) {
    for (int64_t head = 0; head < shape.heads; ++head, x += 2 * half, y += 2 * half) {
      for (int64_t i = 0; i < half; ++i) {
        const A low = load(x[i]), high = load(x[i + half]), turn = sign * sin[i];
        store(low * cos[i] - high * turn, y[i]);
        store(high * cos[i] + low * turn, y[i + half]);
      }
    }
  }
}

#define MM_INSTANTIATE(T)                                                            \
  template void rms_norm_forward<T>(Shape, const T*, const T*, double, T*, Acc<T>*); \
  template void rms_norm_backward<T>(Shape, const RmsNormBackward<T>&);              \
  template void swiglu_forward<T>(int64_t, const T*, const T*, T*);                  \
  template void swiglu_backward<T>(int64_t, const SwigluBackward<T>&);               \
  template void quick_gelu_forward<T>(int64_t, const T*, T*);                        \
  template void quick_gelu_backward<T>(int64_t, const T*, const T*, T*);             \
  template void rope<T>(RopeShape, const T*, const Acc<T>*, const Acc<T>*, T*);

MM_INSTANTIATE(double)
MM_INSTANTIATE(float)
MM_INSTANTIATE(Bf16)

}  // namespace mm::model::row_kernels
