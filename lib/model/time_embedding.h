#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lib/model/declare_params.h"

namespace mm::model {

/// Numbers that a time, a resolution or an aspect ratio becomes.
inline constexpr int64_t kSinusoidWidth = 256;

/// values [n] -> [n, kSinusoidWidth] float64: cosines, then sines, of value * exp(-ln(10000) i /
/// divisor), i = 0 ... kSinusoidWidth / 2 - 1. Angles reach 1,000: computed in float64.
at::Tensor sinusoid(const at::Tensor& values, int64_t divisor);

/// Linear, SiLU, linear: of times, sizes and pooled captions.
struct Embedder {
  Linear first, second;
};
/// "NAME.linear_1", "NAME.linear_2".
Embedder declare_embedder(const DeclareParams& declare, const std::string& name, int64_t in,
                          int64_t out);
void append_params(std::vector<ParamId>& list, const Embedder& embedder);
/// x [n, in] of any float dtype -> [n, out] in the dtype of the weights.
at::Tensor apply(const Embedder& embedder, const ParamView& params, const at::Tensor& x);

}  // namespace mm::model
