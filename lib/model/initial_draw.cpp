#include "lib/model/initial_draw.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

#include "lib/base/error.h"
#include "lib/base/thread_pool.h"
#include "lib/model/position_table.h"

namespace mm::model {
namespace {

constexpr int64_t kChunk = int64_t{1} << 16;  // elements that a thread draws at a time

double xavier_bound(const ParamSpec& spec) {
  MM_CHECK(spec.shape.size() >= 2, "{}: Xavier initialisation needs two dimensions, it has {}",
           spec.name, spec.shape.size());
  int64_t receptive = 1;
  for (size_t d = 2; d < spec.shape.size(); ++d) receptive *= spec.shape[d];
  return std::sqrt(6.0 / static_cast<double>((spec.shape[0] + spec.shape[1]) * receptive));
}

/// Product of all dimensions but the first.
double matrix_columns(const ParamSpec& spec) {
  MM_CHECK(spec.shape.size() >= 2, "{}: fan-in initialisation needs two dimensions, it has {}",
           spec.name, spec.shape.size());
  double inputs = 1;
  for (size_t d = 1; d < spec.shape.size(); ++d) inputs *= static_cast<double>(spec.shape[d]);
  return inputs;
}

int64_t square_side(const ParamSpec& spec) {
  MM_CHECK(spec.shape.size() == 3 && spec.shape[0] == 1, "{}: a grid of positions is [1, n, width]",
           spec.name);
  const auto side = std::llround(std::sqrt(static_cast<double>(spec.shape[1])));
  MM_CHECK(side * side == spec.shape[1], "{}: {} positions are no square", spec.name,
           spec.shape[1]);
  return side;
}

/// out[i] = value(i) for all i, in chunks on all cores.
template <typename T, typename Value>
void fill_all(T* out, int64_t count, const Value& value) {
  const auto chunks = static_cast<size_t>((count + kChunk - 1) / kChunk);
  parallel_for(chunks, chunks > 1 ? 0 : 1, [&](size_t chunk) {
    const int64_t start = static_cast<int64_t>(chunk) * kChunk;
    const int64_t end = std::min(count, start + kChunk);
    for (int64_t i = start; i < end; ++i) out[i] = static_cast<T>(value(i));
  });
}

template <typename Value>
void fill_tensor(const at::Tensor& out, const Value& value) {
  MM_CHECK(out.is_contiguous(), "initial values go to contiguous tensors");
  if (out.scalar_type() == at::kDouble) return fill_all(out.data_ptr<double>(), out.numel(), value);
  MM_CHECK(out.scalar_type() == at::kFloat, "initial values are drawn in fp32 or float64, not {}",
           c10::toString(out.scalar_type()));
  fill_all(out.data_ptr<float>(), out.numel(), value);
}

}  // namespace

InitialDraw::InitialDraw(const ParamSpec& spec, uint64_t seed)
    : spec_(spec), stream_(Philox(seed, "init").child(spec.name)) {
  if (spec.init == Init::kXavierUniform) bound_ = xavier_bound(spec);
  if (spec.init == Init::kFanInUniform) bound_ = 1 / std::sqrt(matrix_columns(spec));
  if (spec.init == Init::kXavierMatrix)
    bound_ = std::sqrt(6.0 / (static_cast<double>(spec.shape[0]) + matrix_columns(spec)));
  if (spec.init == Init::kSincosGrid) grid_side_ = square_side(spec);
}

double InitialDraw::at(int64_t element) const {
  const auto index = static_cast<uint64_t>(element);
  switch (spec_.init) {
    case Init::kNormal:
      return spec_.init_std * stream_.normal(index);
    case Init::kZeros:
      return 0.0;
    case Init::kOnes:
      return 1.0;
    case Init::kSincosGrid: {
      const int64_t width = spec_.shape[2], place = element / width;
      return sincos_position(width, element % width,
                             static_cast<double>(place % grid_side_) * spec_.init_std,
                             static_cast<double>(place / grid_side_) * spec_.init_std);
    }
    case Init::kXavierUniform:
    case Init::kXavierMatrix:
    case Init::kFanInUniform:
      return bound_ * (2.0 * stream_.uniform(index) - 1.0);
  }
  throw InternalError("{}: initialiser {} is unknown", spec_.name, static_cast<int>(spec_.init));
}

at::Tensor InitialDraw::whole() const {
  at::Tensor out = at::empty(spec_.shape, at::kFloat);
  fill(out);
  return out;
}

void InitialDraw::fill(at::Tensor out) const {
  MM_CHECK(out.sizes() == at::IntArrayRef(spec_.shape), "{}: another shape than declared",
           spec_.name);
  fill_tensor(out, [this](int64_t i) { return at(i); });
}

at::Tensor InitialDraw::slice(int64_t dim, int64_t start, int64_t length,
                              at::ScalarType dtype) const {
  const auto cut = static_cast<size_t>(dim);
  MM_CHECK(
      cut < spec_.shape.size() && start >= 0 && length >= 0 && start + length <= spec_.shape[cut],
      "{}: rows {} to {} of dimension {}", spec_.name, start, start + length, dim);
  int64_t inner = 1;
  for (size_t d = cut + 1; d < spec_.shape.size(); ++d) inner *= spec_.shape[d];
  std::vector<int64_t> shape = spec_.shape;
  shape[cut] = length;
  at::Tensor out = at::empty(shape, dtype);
  const int64_t run = length * inner, stride = spec_.shape[cut] * inner;
  fill_tensor(out, [&](int64_t i) { return at(i / run * stride + start * inner + i % run); });
  return out;
}

}  // namespace mm::model
