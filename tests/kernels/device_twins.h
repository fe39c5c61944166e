#pragma once
#include "tests/kernels/cuda_twins.h"

namespace mm::kernels::test {

// The CUDA twins on a device: arrays are copied there, the twin runs, results are copied back. T
// and C are float or Bf16. A failing call throws DeviceError with CUDA's word for it.
template <typename T>
RmsNormTwin<T> device_rms_norm();
template <typename T>
SwigluTwin<T> device_swiglu();
template <typename T>
ActivationTwin<T> device_quick_gelu();
template <typename T>
ActivationTwin<T> device_gelu_tanh();
template <typename T>
AdaNormTwin<T> device_ada_norm();
template <typename T>
RopeTwin<T> device_rope();
template <typename T>
CrossEntropyTwin<T> device_cross_entropy();
template <typename C>
AdamWTwin<float, C> device_adamw();
template <typename T>
PackedAttentionTwin<T> device_packed_attention();

}  // namespace mm::kernels::test
