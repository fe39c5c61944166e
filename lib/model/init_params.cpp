#include "lib/model/init_params.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cmath>

#include "lib/base/error.h"
#include "lib/base/random.h"

namespace mm::model {
namespace {

template <typename Draw>
void fill(const at::Tensor& tensor, const Draw& draw) {
  float* data = tensor.mutable_data_ptr<float>();
  at::parallel_for(0, tensor.numel(), 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      data[i] = static_cast<float>(draw(static_cast<uint64_t>(i)));
  });
}

double xavier_bound(const std::vector<int64_t>& shape) {
  MM_CHECK(shape.size() >= 2, "Xavier needs two dimensions, got {}", shape.size());
  int64_t receptive = 1;
  for (size_t i = 2; i < shape.size(); ++i) receptive *= shape[i];
  return std::sqrt(6.0 / static_cast<double>((shape[0] + shape[1]) * receptive));
}

}  // namespace

at::Tensor initial_value(const ParamSpec& spec, uint64_t seed) {
  const auto options = at::TensorOptions().dtype(at::kFloat);
  if (spec.init == Init::kZeros) return at::zeros(spec.shape, options);
  if (spec.init == Init::kOnes) return at::ones(spec.shape, options);
  at::Tensor tensor = at::empty(spec.shape, options);
  const Philox stream = Philox(seed, "init").child(spec.name);
  if (spec.init == Init::kNormal) {
    fill(tensor, [&](uint64_t i) { return spec.init_std * stream.normal(i); });
  } else {
    const double bound = xavier_bound(spec.shape);
    fill(tensor, [&](uint64_t i) { return bound * (2 * stream.uniform(i) - 1); });
  }
  return tensor;
}

}  // namespace mm::model
