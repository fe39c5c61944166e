#pragma once
#include "tests/kernels/ada_norm_case.h"
#include "tests/kernels/adamw_case.h"
#include "tests/kernels/cross_entropy_case.h"
#include "tests/kernels/gates_case.h"
#include "tests/kernels/packed_attention_case.h"
#include "tests/kernels/rms_norm_case.h"
#include "tests/kernels/rope_case.h"

namespace mm::kernels::test {

// The CUDA twins, T and C being float or Bf16, with their threads played on the CPU.
template <typename T>
RmsNormTwin<T> played_rms_norm();
template <typename T>
SwigluTwin<T> played_swiglu();
template <typename T>
ActivationTwin<T> played_quick_gelu();
template <typename T>
ActivationTwin<T> played_gelu_tanh();
template <typename T>
AdaNormTwin<T> played_ada_norm();
template <typename T>
RopeTwin<T> played_rope();
template <typename T>
CrossEntropyTwin<T> played_cross_entropy();
template <typename C>
AdamWTwin<float, C> played_adamw();
template <typename T>
PackedAttentionTwin<T> played_packed_attention();

}  // namespace mm::kernels::test
