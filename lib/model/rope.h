#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "lib/model/llava_config.h"

namespace mm::model {

// T tokens, H heads, D head size (even). Rotary positions as Llama has them: halves are rotated (i
// with i + D/2), not neighbours.

/// Angles of each token: cos and sin, [T, D/2], of position * theta^(-2i/D). fp32 throughout, in
/// the order of operations of the published models, so that long contexts agree with them; float64
/// when `wide`. `scaling` changes the frequencies as Hugging Face's rope types "linear" and
/// "llama3" do.
struct RopeAngles {
  at::Tensor cos, sin;
};
RopeAngles rope_angles(const at::Tensor& positions, int64_t head_size, double theta, bool wide,
                       const RopeScaling& scaling = {});

/// Angles of tokens that have several positions (M-RoPE). positions [axes, T]; the pairs of a head
/// turn with the position of the first axis for sections[0] pairs, then with the second's, ...;
/// their sum is D/2. One axis is rope_angles.
struct RopeAxes {
  at::Tensor positions;
  std::vector<int64_t> sections;
};
RopeAngles axis_rope_angles(const RopeAxes& axes, int64_t head_size, double theta, bool wide);

/// Angles of the patches of pictures: the first half of the pairs turns with the row, the second
/// with the column, both with the frequencies theta^(-4i/D), i < D/4. row, column [T]; D a multiple
/// of 4.
struct GridPlaces {
  at::Tensor row, column;
};
RopeAngles grid_rope_angles(const GridPlaces& places, int64_t head_size, double theta, bool wide);

/// x [T, H, D] -> rotated, same shape and dtype: y[i] = x[i] cos_i - x[i + D/2] sin_i, y[i + D/2] =
/// x[i + D/2] cos_i + x[i] sin_i. Differentiable in x.
at::Tensor rope(const at::Tensor& x, const RopeAngles& angles);
/// The same from plain operations under autograd, kept as the reference.
at::Tensor rope_reference(const at::Tensor& x, const RopeAngles& angles);

}  // namespace mm::model
