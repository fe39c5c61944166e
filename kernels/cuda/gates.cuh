#pragma once
// y = silu(gate) up, y = x sigmoid(1.702 x), and GELU by its tanh approximation, with their gradients: one thread an element in a grid-stride loop, neighbouring threads
// on neighbouring elements. Memory-bound: every operand is read once, every result written once.
#include "kernels/cuda/warp.cuh"
#include "kernels/gelu_tanh.h"
#include "kernels/quick_gelu.h"
#include "kernels/swiglu.h"

namespace mm::kernels {

template <typename T>
__global__ void swiglu_forward_kernel(int64_t count, const T* gate, const T* up, T* y) {
  for (int64_t i = first_element(); i < count; i += element_stride()) store(swiglu_value(load(gate[i]), load(up[i])), y[i]);
}

template <typename T>
__global__ void swiglu_backward_kernel(int64_t count, SwigluBackward<T> p) {
  for (int64_t i = first_element(); i < count; i += element_stride()) {
    const float d = load(p.dy[i]), g = load(p.gate[i]), u = load(p.up[i]);
    store(swiglu_gate_grad(d, g, u), p.d_gate[i]);
    store(swiglu_up_grad(d, g), p.d_up[i]);
  }
}

template <typename T>
__global__ void quick_gelu_forward_kernel(int64_t count, const T* x, T* y) {
  for (int64_t i = first_element(); i < count; i += element_stride()) store(quick_gelu_value(load(x[i])), y[i]);
}

template <typename T>
__global__ void quick_gelu_backward_kernel(int64_t count, const T* dy, const T* x, T* dx) {
  for (int64_t i = first_element(); i < count; i += element_stride()) store(quick_gelu_grad(load(dy[i]), load(x[i])), dx[i]);
}

template <typename T>
__global__ void gelu_tanh_forward_kernel(int64_t count, const T* x, T* y) {
  for (int64_t i = first_element(); i < count; i += element_stride()) store(gelu_tanh_value(load(x[i])), y[i]);
}

template <typename T>
__global__ void gelu_tanh_backward_kernel(int64_t count, const T* dy, const T* x, T* dx) {
  for (int64_t i = first_element(); i < count; i += element_stride()) store(gelu_tanh_grad(load(dy[i]), load(x[i])), dx[i]);
}

}  // namespace mm::kernels
