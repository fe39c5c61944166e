#include "lib/model/objective_draw.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lib/base/error.h"

namespace mm::model {
namespace {

// u of a flow's density from uniform or normal draws (Esser et al. 2024, equations 19, 20, 21).
double draw_flow(const Objective& o, const Philox& stream) {
  switch (o.density) {
    case FlowDensity::kLogitNormal:
      return 1 / (1 + std::exp(-(o.density_mean + o.density_deviation * stream.normal(0))));
    case FlowDensity::kUniform:
      return stream.uniform(0);
    case FlowDensity::kMode: {
      const double u = stream.uniform(0), c = std::cos(std::numbers::pi / 2 * u);
      return 1 - u - o.mode_scale * (c * c - 1 + u);
    }
    case FlowDensity::kCosmap:
      return 1 - 1 / (std::tan(std::numbers::pi / 2 * stream.uniform(0)) + 1);
  }
  throw InternalError("density {} is unknown", static_cast<int>(o.density));
}

int64_t step_of(double u, int64_t steps) {
  const auto step = static_cast<int64_t>(std::floor(u * static_cast<double>(steps)));
  return std::clamp<int64_t>(step, 0, steps - 1);
}

}  // namespace

Philox sample_stream(uint64_t seed, std::string_view purpose, uint64_t epoch, uint64_t sample) {
  return Philox(seed, purpose).child(epoch).child(sample);
}

DrawnTime time_of(const Objective& objective, double u) {
  const int64_t steps = objective.steps;
  if (!objective.is_flow()) return {static_cast<double>(step_of(u, steps)), 0};
  const double sigma = objective.from_table
                           ? table_sigma(step_of(u, steps), steps, objective.shift)
                           : shifted_sigma(std::clamp(u, 0.0, 1.0), objective.shift);
  return {static_cast<double>(steps) * sigma, sigma};
}

DrawnTime draw_time(const Objective& objective, const Philox& stream) {
  return time_of(objective, objective.is_flow() ? draw_flow(objective, stream) : stream.uniform(0));
}

std::vector<DrawnTime> fixed_times(const Objective& objective, int64_t count) {
  std::vector<DrawnTime> times;
  for (int64_t i = 0; i < count; ++i)
    times.push_back(
        time_of(objective, (static_cast<double>(i) + 0.5) / static_cast<double>(count)));
  return times;
}

void fill_normal(at::Tensor out, const Philox& stream) {
  MM_CHECK(out.is_contiguous() && out.is_cpu(), "noise goes to contiguous tensors of the CPU");
  const auto count = static_cast<uint64_t>(out.numel());
  if (out.scalar_type() == at::kDouble) {
    auto* to = out.data_ptr<double>();
    for (uint64_t i = 0; i < count; ++i) to[i] = stream.normal(i);
    return;
  }
  MM_CHECK(out.scalar_type() == at::kFloat, "noise is fp32 or float64");
  auto* to = out.data_ptr<float>();
  for (uint64_t i = 0; i < count; ++i) to[i] = static_cast<float>(stream.normal(i));
}

bool draws_drop(const Philox& stream, double probability) {
  return stream.uniform(0) < probability;
}

}  // namespace mm::model
