#include "lib/model/rope.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <numbers>

#include "kernels/rope.h"
#include "lib/model/row_dispatch.h"

namespace mm::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

// Tokens that one task rotates.
constexpr int64_t kGrainTokens = 64;

at::Tensor rotate(const at::Tensor& given, const at::Tensor& cos, const at::Tensor& sin,
                  int direction) {
  const at::Tensor x = given.contiguous();
  at::Tensor y = at::empty_like(x);
  const int64_t heads = x.size(1), half = x.size(2) / 2, width = x.size(1) * x.size(2);
  for_storage_of(x, [&]<typename T>() {
    using A = kernels::Acc<T>;
    at::parallel_for(0, x.size(0), kGrainTokens, [&](int64_t begin, int64_t end) {
      kernels::rope<T>({end - begin, heads, half, direction}, in<T>(x) + begin * width,
                           in<A>(cos) + begin * half, in<A>(sin) + begin * half,
                           out<T>(y) + begin * width);
    });
  });
  return y;
}

struct Rope : torch::autograd::Function<Rope> {
  static Variable forward(AutogradContext* context, const Variable& x, const at::Tensor& cos,
                          const at::Tensor& sin) {
    context->save_for_backward({cos, sin});
    return rotate(x, cos, sin, 1);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    return {rotate(gradients[0], saved[0], saved[1], -1), Variable(), Variable()};
  }
};

// theta^(-2i/width), i < width / 2.
at::Tensor inverse_frequencies(int64_t width, double theta, at::ScalarType dtype) {
  const at::Tensor exponent = at::arange(0, width, 2, at::kLong).to(dtype) / width;
  return 1.0 / at::pow(theta, exponent);
}

at::ScalarType angle_type(bool wide) { return wide ? at::kDouble : at::kFloat; }

/// Llama 3.1: waves longer than the first context over low_freq_factor are stretched, those shorter
/// than it over high_freq_factor kept, what lies between is blended linearly in the frequency.
at::Tensor stretched(const at::Tensor& frequency, const RopeScaling& s) {
  const at::Tensor wavelength = 2 * std::numbers::pi / frequency;
  const at::Tensor far = frequency / s.factor;
  const at::Tensor share = (s.original_positions / wavelength - s.low_freq_factor) /
                           (s.high_freq_factor - s.low_freq_factor);
  const at::Tensor blended = (1 - share) * far + share * frequency;
  const at::Tensor low = wavelength > s.original_positions / s.low_freq_factor;
  const at::Tensor high = wavelength < s.original_positions / s.high_freq_factor;
  return at::where(low, far, at::where(high, frequency, blended));
}

}  // namespace

RopeAngles rope_angles(const at::Tensor& positions, int64_t head_size, double theta, bool wide,
                       const RopeScaling& scaling) {
  const at::ScalarType dtype = angle_type(wide);
  at::Tensor inverse_frequency = inverse_frequencies(head_size, theta, dtype);
  if (scaling.kind == RopeScaling::Kind::kLinear) inverse_frequency /= scaling.factor;
  if (scaling.kind == RopeScaling::Kind::kLlama3)
    inverse_frequency = stretched(inverse_frequency, scaling);
  const at::Tensor angle = positions.to(dtype).unsqueeze(1) * inverse_frequency.unsqueeze(0);
  return {at::cos(angle), at::sin(angle)};
}

RopeAngles axis_rope_angles(const RopeAxes& axes, int64_t head_size, double theta, bool wide) {
  const at::ScalarType dtype = angle_type(wide);
  std::vector<int64_t> axis_of_pair;
  for (size_t axis = 0; axis < axes.sections.size(); ++axis)
    axis_of_pair.insert(axis_of_pair.end(), static_cast<size_t>(axes.sections[axis]),
                        static_cast<int64_t>(axis));
  MM_CHECK(axes.positions.dim() == 2 &&
               axes.positions.size(0) == static_cast<int64_t>(axes.sections.size()) &&
               static_cast<int64_t>(axis_of_pair.size()) == head_size / 2,
           "{} sections of {} pairs for a head of {}", axes.sections.size(), axis_of_pair.size(),
           head_size);
  const at::Tensor position = axes.positions.index_select(0, at::tensor(axis_of_pair, at::kLong));
  const at::Tensor angle =
      position.t().to(dtype).contiguous() * inverse_frequencies(head_size, theta, dtype);
  return {at::cos(angle), at::sin(angle)};
}

RopeAngles grid_rope_angles(const GridPlaces& places, int64_t head_size, double theta, bool wide) {
  const at::ScalarType dtype = angle_type(wide);
  const at::Tensor frequency = inverse_frequencies(head_size / 2, theta, dtype).unsqueeze(0);
  const at::Tensor angle = at::cat({places.row.to(dtype).unsqueeze(1) * frequency,
                                    places.column.to(dtype).unsqueeze(1) * frequency},
                                   1);
  return {at::cos(angle), at::sin(angle)};
}

at::Tensor rope_reference(const at::Tensor& x, const RopeAngles& angles) {
  const at::Tensor v = x.to(angles.cos.scalar_type());
  const int64_t half = x.size(-1) / 2;
  const at::Tensor low = v.narrow(-1, 0, half), high = v.narrow(-1, half, half);
  const at::Tensor cos = angles.cos.unsqueeze(1), sin = angles.sin.unsqueeze(1);
  return at::cat({low * cos - high * sin, high * cos + low * sin}, -1).to(x.scalar_type());
}

at::Tensor rope(const at::Tensor& x, const RopeAngles& angles) {
  MM_CHECK(x.dim() == 3 && x.size(0) == angles.cos.size(0) && x.size(2) == 2 * angles.cos.size(1),
           "[{}, {}, {}] for angles of {} tokens and {} pairs", x.size(0), x.size(1), x.size(2),
           angles.cos.size(0), angles.cos.size(1));
  if (!has_row_kernel(x) || angles.cos.scalar_type() != accumulate_type(x))
    return rope_reference(x, angles);
  return Rope::apply(x, angles.cos, angles.sin);
}

}  // namespace mm::model
