#include "lib/optim/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "lib/base/error.h"

namespace mm::optim {
namespace {

constexpr std::array<std::pair<std::string_view, ScheduleKind>, 7> kKinds = {{
    {"constant", ScheduleKind::kConstant},
    {"linear", ScheduleKind::kLinear},
    {"cosine", ScheduleKind::kCosine},
    {"wsd", ScheduleKind::kWsdLinear},
    {"wsd_linear", ScheduleKind::kWsdLinear},
    {"wsd_cosine", ScheduleKind::kWsdCosine},
    {"wsd_one_minus_sqrt", ScheduleKind::kWsdSqrt},
}};

bool is_wsd(ScheduleKind kind) {
  return kind == ScheduleKind::kWsdLinear || kind == ScheduleKind::kWsdCosine ||
         kind == ScheduleKind::kWsdSqrt;
}

/// How far `step` is on its way from `start` to `end`, in [0, 1].
double progress(int64_t step, int64_t start, int64_t end) {
  if (step >= end) return 1.0;
  return std::max(0.0, static_cast<double>(step - start) / static_cast<double>(end - start));
}

/// From 1 at p = 0 to 0 at p = 1.
double fall(ScheduleKind kind, double p) {
  switch (kind) {
    case ScheduleKind::kConstant:
      return 1.0;
    case ScheduleKind::kLinear:
    case ScheduleKind::kWsdLinear:
      return 1.0 - p;
    case ScheduleKind::kCosine:
    case ScheduleKind::kWsdCosine:
      return 0.5 * (1.0 + std::cos(std::numbers::pi * p));
    case ScheduleKind::kWsdSqrt:
      return 1.0 - std::sqrt(p);
  }
  throw InternalError("schedule kind {} has no shape", static_cast<int>(kind));
}

}  // namespace

std::optional<ScheduleKind> schedule_kind(std::string_view word) {
  for (const auto& [name, kind] : kKinds) {
    if (name == word) return kind;
  }
  return std::nullopt;
}

double Schedule::at(int64_t step) const {
  if (step < warmup_steps) {
    const int64_t done = first_step_not_zero ? step + 1 : step;
    return base * (static_cast<double>(done) / static_cast<double>(warmup_steps));
  }
  if (kind == ScheduleKind::kConstant) return base;
  const int64_t start = is_wsd(kind) ? total_steps - decay_steps : warmup_steps;
  if (step < start) return base;
  return min + (base - min) * fall(kind, progress(step, start, total_steps));
}

void Schedule::check() const {
  if (!(base >= 0) || !std::isfinite(base))
    throw UsageError("learning rate {}; expected 0 or more", base);
  if (!(min >= 0) || min > base)
    throw UsageError("lowest learning rate {}; expected 0 to the base rate {}", min, base);
  if (warmup_steps < 0 || total_steps < 0 || decay_steps < 0) {
    throw UsageError("schedule of {} steps, {} of warm-up, {} of decay; none may be negative",
                     total_steps, warmup_steps, decay_steps);
  }
  if (kind == ScheduleKind::kConstant) return;
  const int64_t decay = is_wsd(kind) ? decay_steps : 0;
  if (warmup_steps > total_steps - decay) {
    throw UsageError("warm-up of {} steps and decay of {} do not fit into {} steps", warmup_steps,
                     decay, total_steps);
  }
}

}  // namespace mm::optim
