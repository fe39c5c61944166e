#include "lib/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace mm::optim {
namespace {

/// Share of the way from `min` to `base` that is left at progress p in [0, 1].
double left(ScheduleKind kind, double p) {
  switch (kind) {
    case ScheduleKind::kConstant:
      return 1;
    case ScheduleKind::kLinear:
    case ScheduleKind::kWsdLinear:
      return 1 - p;
    case ScheduleKind::kCosine:
    case ScheduleKind::kWsdCosine:
      return 0.5 * (1 + std::cos(std::numbers::pi * p));
    case ScheduleKind::kWsdSqrt:
      return 1 - std::sqrt(p);
  }
  return 1;
}

double progress(const Schedule& s, int64_t step) {
  const bool whole = s.kind == ScheduleKind::kLinear || s.kind == ScheduleKind::kCosine;
  const int64_t begin = whole ? s.warmup_steps : s.total_steps - s.decay_steps;
  const int64_t length = std::max<int64_t>(1, s.total_steps - begin);
  return std::clamp(static_cast<double>(step - begin) / static_cast<double>(length), 0.0, 1.0);
}

}  // namespace

std::optional<ScheduleKind> schedule_kind(std::string_view word) {
  if (word == "constant") return ScheduleKind::kConstant;
  if (word == "linear") return ScheduleKind::kLinear;
  if (word == "cosine") return ScheduleKind::kCosine;
  if (word == "wsd") return ScheduleKind::kWsdLinear;
  if (word == "wsd_cosine") return ScheduleKind::kWsdCosine;
  if (word == "wsd_sqrt") return ScheduleKind::kWsdSqrt;
  return std::nullopt;
}

double Schedule::at(int64_t step) const {
  if (step < warmup_steps) {
    return base * static_cast<double>(step + (first_step_not_zero ? 1 : 0)) /
           static_cast<double>(warmup_steps);
  }
  if (kind == ScheduleKind::kConstant) return base;
  return min + (base - min) * left(kind, progress(*this, step));
}

}  // namespace mm::optim
