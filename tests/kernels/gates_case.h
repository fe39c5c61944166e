#pragma once
#include <functional>

#include "kernels/gelu_tanh.h"
#include "kernels/quick_gelu.h"
#include "kernels/swiglu.h"
#include "tests/kernels/twin_case.h"

namespace mm::kernels::test {

template <typename T>
struct SwigluTwin {
  std::function<void(int64_t, const T*, const T*, T*)> forward;
  std::function<void(int64_t, const SwigluBackward<T>&)> backward;
};

template <typename T>
double swiglu_error(const SwigluTwin<T>& twin, int64_t count) {
  const auto gate = draw<T>(count, 1, -9, 9), up = draw<T>(count, 2), dy = draw<T>(count, 3);
  std::vector<double> y(count), d_gate(count), d_up(count);
  swiglu_forward_reference(count, gate.data(), up.data(), y.data());
  swiglu_backward_reference(count, {.dy = dy.data(),
                                    .gate = gate.data(),
                                    .up = up.data(),
                                    .d_gate = d_gate.data(),
                                    .d_up = d_up.data()});
  const auto tgate = rounded<T>(gate), tup = rounded<T>(up), tdy = rounded<T>(dy);
  std::vector<T> ty(count), td_gate(count), td_up(count);
  twin.forward(count, tgate.data(), tup.data(), ty.data());
  twin.backward(count, {.dy = tdy.data(),
                        .gate = tgate.data(),
                        .up = tup.data(),
                        .d_gate = td_gate.data(),
                        .d_up = td_up.data()});
  return std::max({worst_error(ty, y), worst_error(td_gate, d_gate), worst_error(td_up, d_up)});
}

/// Of an activation: forward(count, x, y), backward(count, dy, x, dx).
template <typename T>
struct ActivationTwin {
  std::function<void(int64_t, const T*, T*)> forward;
  std::function<void(int64_t, const T*, const T*, T*)> backward;
};

template <typename T>
double activation_error(const ActivationTwin<T>& twin, const ActivationTwin<double>& reference,
                        int64_t count) {
  const auto x = draw<T>(count, 1, -9, 9), dy = draw<T>(count, 3);
  std::vector<double> y(count), dx(count);
  reference.forward(count, x.data(), y.data());
  reference.backward(count, dy.data(), x.data(), dx.data());
  const auto tx = rounded<T>(x), tdy = rounded<T>(dy);
  std::vector<T> ty(count), tdx(count);
  twin.forward(count, tx.data(), ty.data());
  twin.backward(count, tdy.data(), tx.data(), tdx.data());
  return std::max(worst_error(ty, y), worst_error(tdx, dx));
}

template <typename T>
double quick_gelu_error(const ActivationTwin<T>& twin, int64_t count) {
  return activation_error(twin, {quick_gelu_forward_reference, quick_gelu_backward_reference},
                          count);
}
template <typename T>
double gelu_tanh_error(const ActivationTwin<T>& twin, int64_t count) {
  return activation_error(twin, {gelu_tanh_forward_reference, gelu_tanh_backward_reference}, count);
}

}  // namespace mm::kernels::test
