#include "lib/model/noise_schedule.h"

#include <doctest/doctest.h>

#include <cmath>

#include "lib/base/error.h"

using namespace mm;
using namespace mm::model;

TEST_CASE("the product of what each step keeps is what is left of the picture") {
  for (const BetaCurve curve : {BetaCurve::kLinear, BetaCurve::kScaledLinear, BetaCurve::kCosine}) {
    CAPTURE(beta_curve_name(curve));
    const NoiseSchedule schedule(betas_of(curve, 50));
    double bar = 1;
    for (int64_t t = 0; t < 50; ++t) {
      bar *= 1 - schedule.betas[t];
      CHECK(schedule.alpha_bar[t] == doctest::Approx(bar).epsilon(1e-14));
      CHECK(std::pow(schedule.sqrt_alpha_bar[t], 2) + std::pow(schedule.sqrt_one_minus[t], 2) ==
            doctest::Approx(1));
      CHECK(schedule.snr(t) == doctest::Approx(bar / (1 - bar)));
    }
    CHECK(beta_curve(beta_curve_name(curve)) == curve);
  }
  CHECK(!beta_curve("quadratic"));
  CHECK_THROWS_AS(betas_of(BetaCurve::kLinear, 1), UsageError);
}

TEST_CASE("the posterior's mean is x_0 where both ends agree, its variance below beta") {
  const NoiseSchedule schedule(betas_of(BetaCurve::kLinear, 20));
  for (int64_t t = 1; t < 20; ++t) {
    // x_t = sqrt(abar_t) x_0 without noise leads to sqrt(abar_{t-1}) x_0.
    const double mean =
        schedule.posterior_clean[t] + schedule.posterior_noisy[t] * schedule.sqrt_alpha_bar[t];
    CHECK(mean == doctest::Approx(schedule.sqrt_alpha_bar[t - 1]).epsilon(1e-12));
    CHECK(schedule.posterior_log_variance[t] < schedule.log_beta[t]);
  }
  CHECK(schedule.posterior_log_variance[0] == schedule.posterior_log_variance[1]);
}

TEST_CASE("a zero terminal SNR leaves the first step as it was and nothing in the last") {
  const auto betas = betas_of(BetaCurve::kScaledLinear, 1000);
  const NoiseSchedule before(betas), after(zero_terminal_snr(betas));
  CHECK(after.alpha_bar.front() == doctest::Approx(before.alpha_bar.front()).epsilon(1e-12));
  CHECK(after.alpha_bar.back() == 0);
  CHECK(after.betas.back() == 1);
}

TEST_CASE("sampling steps: spaced three ways, highest first, never outside") {
  CHECK(sampling_steps(StepSpacing::kLeading, 1000, 4) == std::vector<int64_t>{750, 500, 250, 0});
  CHECK(sampling_steps(StepSpacing::kTrailing, 1000, 4) ==
        std::vector<int64_t>{999, 749, 499, 249});
  CHECK(sampling_steps(StepSpacing::kLinspace, 1000, 4) == std::vector<int64_t>{999, 666, 333, 0});
  for (const StepSpacing spacing :
       {StepSpacing::kLeading, StepSpacing::kTrailing, StepSpacing::kLinspace}) {
    for (const int64_t count : {1, 3, 7, 999, 1000}) {
      const auto steps = sampling_steps(spacing, 1000, count);
      CHECK(steps.size() == static_cast<size_t>(count));
      CHECK(steps.front() <= 999);
      CHECK(steps.back() >= 0);
    }
    CHECK_THROWS_AS(sampling_steps(spacing, 1000, 1001), UsageError);
    CHECK_THROWS_AS(sampling_steps(spacing, 1000, 0), UsageError);
  }
  CHECK(step_spacing("trailing") == StepSpacing::kTrailing);
  CHECK(!step_spacing("sideways"));
}

TEST_CASE("C54: a shift moves the middle of a flow towards noise and keeps its ends") {
  const double from[] = {.1, .25, .5, .75, .9}, to[] = {.25, .5, .75, .9, .964286};
  for (int i = 0; i < 5; ++i)
    CHECK(shifted_sigma(from[i], 3) == doctest::Approx(to[i]).epsilon(1e-6));
  CHECK(shifted_sigma(.5, 1.8) == doctest::Approx(.642857).epsilon(1e-6));
  CHECK(shifted_sigma(0, 3) == 0);
  CHECK(shifted_sigma(1, 3) == 1);
  CHECK(shifted_sigma(.3, 1) == doctest::Approx(.3));
}

TEST_CASE("sampling sigmas go from noise to the picture") {
  const auto plain = sampling_sigmas(4, 1);
  CHECK(plain.size() == 5);
  CHECK(plain[0] == 1);
  CHECK(plain[3] == .25);
  CHECK(plain[4] == 0);
  const auto twice = sampling_sigmas_twice(4, 3, 1000);
  CHECK(twice.front() == 1);
  CHECK(twice.back() == 0);
  CHECK(twice[1] == doctest::Approx(0.857692).epsilon(1e-6));
  CHECK(sampling_sigmas(4, 3)[1] == doctest::Approx(.9));
  CHECK_THROWS_AS(sampling_sigmas(0, 3), UsageError);
}
