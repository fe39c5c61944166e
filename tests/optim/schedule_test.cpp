#include "lib/optim/schedule.h"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lib/base/error.h"

namespace mm::optim {
namespace {

const Schedule kC43 = {
    .kind = ScheduleKind::kCosine, .base = 1e-3, .min = 0, .warmup_steps = 4, .total_steps = 20};

/// The oracle's curve names: shape, floor ("_to_min", "_to_zero"; WSD falls to the floor) and
/// warm-up.
Schedule schedule_of_curve(std::string curve, Schedule numbers) {
  const std::string not_zero = "_first_step_not_zero";
  numbers.first_step_not_zero = curve.ends_with(not_zero);
  if (numbers.first_step_not_zero) curve.resize(curve.size() - not_zero.size());
  if (curve.ends_with("_to_zero")) numbers.min = 0;
  numbers.kind = schedule_kind(curve.substr(0, curve.find("_to_"))).value();
  return numbers;
}

}  // namespace

TEST_CASE("all learning-rate curves of the oracle are met to 1e-12") {
  std::ifstream file(std::string(MM_TEST_DATA) + "/oracles/schedules/expected.json");
  const nlohmann::json lr = nlohmann::json::parse(file).at("lr");
  const Schedule numbers = {.base = lr.at("base"),
                            .min = lr.at("min"),
                            .warmup_steps = lr.at("warmup"),
                            .total_steps = lr.at("total"),
                            .decay_steps = lr.at("wsd_decay")};
  size_t compared = 0;
  for (const auto& [curve, want] : lr.at("curves").items()) {
    const Schedule schedule = schedule_of_curve(curve, numbers);
    schedule.check();
    for (size_t i = 0; i < want.size(); ++i, ++compared) {
      const int64_t step = lr.at("at").at(i);
      const double error = std::abs(schedule.at(step) - want[i].get<double>());
      CHECK_MESSAGE(error <= 1e-12 * numbers.base, curve, " at step ", step, " differs by ", error);
    }
  }
  CHECK(compared == 12 * 22);
}

TEST_CASE("C43: update k uses schedule(k), whatever the step the run was stopped at") {
  const std::vector<double> want = {
      0, 2.5e-4, 5e-4, 7.5e-4, 1e-3, 9.903926402016153e-4, 9.619397662556434e-4};
  for (size_t k = 0; k < want.size(); ++k)
    CHECK(kC43.at(static_cast<int64_t>(k)) == doctest::Approx(want[k]).epsilon(1e-12));
  CHECK(kC43.at(12) == doctest::Approx(5e-4).epsilon(1e-12));
  CHECK(kC43.at(20) == doctest::Approx(0.0));
  for (int64_t stop = 1; stop < 20; ++stop) {
    const Schedule resumed = {.kind = *schedule_kind("cosine"),
                              .base = 1e-3,
                              .min = 0,
                              .warmup_steps = 4,
                              .total_steps = 20};
    for (int64_t step = stop; step < 20; ++step) CHECK(resumed.at(step) == kC43.at(step));
  }
}

TEST_CASE("the other warm-up convention starts above zero and reaches the base one step earlier") {
  Schedule schedule = kC43;
  schedule.first_step_not_zero = true;
  CHECK(schedule.at(0) == 2.5e-4);
  CHECK(schedule.at(3) == 1e-3);
  CHECK(schedule.at(4) == 1e-3);
}

TEST_CASE("without warm-up the first step has the base rate, behind the end the last rate stays") {
  for (const char* word : {"linear", "cosine", "wsd", "wsd_cosine", "wsd_one_minus_sqrt"}) {
    const Schedule schedule = {.kind = schedule_kind(word).value(),
                               .base = 1.0,
                               .min = 0.25,
                               .warmup_steps = 0,
                               .total_steps = 8,
                               .decay_steps = 4};
    CHECK(schedule.at(0) == 1.0);
    CHECK(schedule.at(8) == 0.25);
    CHECK(schedule.at(1000) == 0.25);
  }
  CHECK(Schedule{.kind = ScheduleKind::kConstant, .base = 3.0}.at(1'000'000) == 3.0);
}

TEST_CASE("a run that is all warm-up, or a decay of no steps, never divides by zero") {
  CHECK(Schedule{.kind = ScheduleKind::kCosine,
                 .base = 1.0,
                 .min = 0.5,
                 .warmup_steps = 4,
                 .total_steps = 4}
            .at(4) == 0.5);
  CHECK(Schedule{.kind = ScheduleKind::kWsdLinear,
                 .base = 1.0,
                 .min = 0.5,
                 .total_steps = 4,
                 .decay_steps = 0}
            .at(3) == 1.0);
  CHECK(Schedule{.kind = ScheduleKind::kWsdSqrt,
                 .base = 1.0,
                 .min = 0.5,
                 .total_steps = 4,
                 .decay_steps = 0}
            .at(4) == 0.5);
}

TEST_CASE("impossible schedules are refused with their numbers") {
  const auto refused = [](const Schedule& schedule) {
    CHECK_THROWS_AS(schedule.check(), UsageError);
  };
  refused({.base = -1});
  refused({.base = NAN});
  refused({.base = 1, .min = 2});
  refused({.base = 1, .warmup_steps = -1});
  refused({.kind = ScheduleKind::kCosine, .base = 1, .warmup_steps = 30, .total_steps = 20});
  const Schedule wsd = {.kind = ScheduleKind::kWsdLinear,
                        .base = 1,
                        .warmup_steps = 15,
                        .total_steps = 20,
                        .decay_steps = 6};
  CHECK_THROWS_WITH(wsd.check(), "warm-up of 15 steps and decay of 6 do not fit into 20 steps");
  CHECK_FALSE(schedule_kind("cosin").has_value());
}

}  // namespace mm::optim
