#include "lib/model/rope.h"

#include <ATen/ATen.h>

namespace mm::model {

RopeAngles rope_angles(const at::Tensor& positions, int64_t head_size, double theta, bool wide) {
  const auto dtype = wide ? at::kDouble : at::kFloat;
  const at::Tensor exponent = at::arange(0, head_size, 2, at::kLong).to(dtype) / head_size;
  const at::Tensor inverse_frequency = 1.0 / at::pow(theta, exponent);
  const at::Tensor angle = positions.to(dtype).unsqueeze(1) * inverse_frequency.unsqueeze(0);
  return {at::cos(angle), at::sin(angle)};
}

at::Tensor rope_reference(const at::Tensor& x, const RopeAngles& angles) {
  const at::Tensor v = x.to(angles.cos.scalar_type());
  const int64_t half = x.size(-1) / 2;
  const at::Tensor low = v.narrow(-1, 0, half), high = v.narrow(-1, half, half);
  const at::Tensor cos = angles.cos.unsqueeze(1), sin = angles.sin.unsqueeze(1);
  return at::cat({low * cos - high * sin, high * cos + low * sin}, -1).to(x.scalar_type());
}

at::Tensor rope(const at::Tensor& x, const RopeAngles& angles) { return rope_reference(x, angles); }

}  // namespace mm::model
