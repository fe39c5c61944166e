#include "lib/image/resize_weights.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lib/base/error.h"

namespace mm::image {
namespace {

double box(double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }

double triangle(double x) {
  x = std::fabs(x);
  return x < 1.0 ? 1.0 - x : 0.0;
}

// Keys' cubic convolution, a = -0.5.
double cubic(double x) {
  constexpr double a = -0.5;
  x = std::fabs(x);
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
  if (x < 2.0) return (((x - 5.0) * x + 8.0) * x - 4.0) * a;
  return 0.0;
}

double sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

double lanczos3(double x) { return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3.0) : 0.0; }

struct Kernel {
  double (*value)(double);
  double support;
};

Kernel kernel_of(Filter filter) {
  switch (filter) {
    case Filter::kBox:
      return {box, 0.5};
    case Filter::kBilinear:
      return {triangle, 1.0};
    case Filter::kBicubic:
      return {cubic, 2.0};
    case Filter::kLanczos:
      return {lanczos3, 3.0};
    case Filter::kNearest:
      break;
  }
  throw InternalError("make_weights: the nearest filter has no weights");
}

int32_t to_fixed(double weight) {
  const double scaled = weight * (1 << kWeightBits);
  return static_cast<int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
}

}  // namespace

std::optional<Filter> filter_from_name(std::string_view name) {
  if (name == "nearest") return Filter::kNearest;
  if (name == "box") return Filter::kBox;
  if (name == "bilinear") return Filter::kBilinear;
  if (name == "bicubic") return Filter::kBicubic;
  if (name == "lanczos") return Filter::kLanczos;
  return std::nullopt;
}

WeightTable make_weights(int32_t in, int32_t out, Filter filter, int32_t from, int32_t count) {
  const Kernel kernel = kernel_of(filter);
  const double scale = static_cast<double>(in) / out;
  const double filter_scale = std::max(scale, 1.0);
  const double support = kernel.support * filter_scale;
  const double step = 1.0 / filter_scale;
  WeightTable table;
  std::vector<double> values;
  for (int32_t x = from; x < from + count; ++x) {
    const double centre = (x + 0.5) * scale;
    const int32_t first = std::max(0, static_cast<int32_t>(centre - support + 0.5));
    const int32_t end = std::min(in, static_cast<int32_t>(centre + support + 0.5));
    values.clear();
    double sum = 0.0;
    for (int32_t i = first; i < end; ++i) {
      values.push_back(kernel.value((i - centre + 0.5) * step));
      sum += values.back();
    }
    table.taps.push_back({first, end - first, table.weights.size()});
    for (const double value : values)
      table.weights.push_back(to_fixed(sum != 0.0 ? value / sum : value));
  }
  return table;
}

std::vector<int32_t> nearest_sources(int32_t in, int32_t out, int32_t from, int32_t count) {
  const double scale = static_cast<double>(in) / out;
  double position = scale * 0.5;
  std::vector<int32_t> sources;
  for (int32_t x = 0; x < from + count; ++x, position += scale) {
    if (x >= from) sources.push_back(std::min(static_cast<int32_t>(position), in - 1));
  }
  return sources;
}

}  // namespace mm::image
