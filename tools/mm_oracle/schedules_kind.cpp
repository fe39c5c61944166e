#include <cmath>
#include <optional>

#include "lib/base/error.h"
#include "lib/optim/schedule.h"
#include "tools/mm_oracle/checks.h"
#include "tools/mm_oracle/kinds.h"

namespace mm::oracle {
namespace {

constexpr double kTolerance = 1e-12;

// "wsd_cosine_first_step_not_zero" and so on; nothing for a curve that no schedule draws.
std::optional<optim::Schedule> schedule_of(std::string curve, optim::Schedule common, double min) {
  const std::string suffix = "_first_step_not_zero";
  common.first_step_not_zero = curve.ends_with(suffix);
  if (common.first_step_not_zero) curve.resize(curve.size() - suffix.size());
  struct Shape {
    const char* name;
    optim::ScheduleKind kind;
    bool to_zero;
  };
  for (const Shape& shape : {Shape{"cosine_to_min", optim::ScheduleKind::kCosine, false},
                             Shape{"cosine_to_zero", optim::ScheduleKind::kCosine, true},
                             Shape{"linear_to_zero", optim::ScheduleKind::kLinear, true},
                             Shape{"wsd_linear", optim::ScheduleKind::kWsdLinear, false},
                             Shape{"wsd_cosine", optim::ScheduleKind::kWsdCosine, false},
                             Shape{"wsd_one_minus_sqrt", optim::ScheduleKind::kWsdSqrt, false}}) {
    if (curve != shape.name) continue;
    common.kind = shape.kind;
    common.min = shape.to_zero ? 0 : min;
    return common;
  }
  return std::nullopt;
}

// Near zero a relative error means nothing: rates are compared against the base as well.
double error_of(double got, double want, double base) {
  return std::min(relative_error(got, want), std::abs(got - want) / base);
}

}  // namespace

void check_schedules(Folder& folder, Report& report) {
  check_diffusion_schedules(folder, report);
  folder.set_aside({"lr/largest_difference_to_library_up_to_step_1000",
                    "lr/largest_difference_to_library_after_step_1000"});
  optim::Schedule common;
  common.base = folder.number("lr/base");
  common.warmup_steps = static_cast<int64_t>(folder.number("lr/warmup"));
  common.total_steps = static_cast<int64_t>(folder.number("lr/total"));
  common.decay_steps = static_cast<int64_t>(folder.number("lr/wsd_decay"));
  const double min = folder.number("lr/min");
  const auto steps = folder.numbers("lr/at");
  for (const std::string& curve : folder.keys("lr/curves")) {
    const auto schedule = schedule_of(curve, common, min);
    if (!schedule) continue;
    const auto want = folder.numbers("lr/curves/" + curve);
    double worst = want.size() == steps.size() ? 0 : INFINITY;
    for (size_t i = 0; i < std::min(want.size(), steps.size()); ++i) {
      worst = std::max(
          worst, error_of(schedule->at(static_cast<int64_t>(steps[i])), want[i], common.base));
    }
    report.number("lr/curves/" + curve, worst, kTolerance, "rel");
  }
}

}  // namespace mm::oracle
