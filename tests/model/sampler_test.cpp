#include "lib/model/sampler.h"

#include <ATen/ATen.h>
#include <doctest/doctest.h>

#include <cmath>

#include "lib/base/error.h"

using namespace mm;
using namespace mm::model;

namespace {

// Noise that a normal distribution of mean m and deviation s is found in: the exact predictor.
struct Normal {
  double mean = 0.7, deviation = 0.3;

  at::Tensor noise(const at::Tensor& x, double alpha_bar) const {
    const double variance = alpha_bar * deviation * deviation + 1 - alpha_bar;
    return std::sqrt(1 - alpha_bar) * (x - std::sqrt(alpha_bar) * mean) / variance;
  }
};

at::Tensor quantiles() { return at::tensor({-2.0, -1.0, 0.0, 0.5, 2.0}, at::kDouble); }

double error_of(const Process& process, const SamplerOptions& options) {
  const Normal data;
  const at::Tensor got =
      sample(process, options, quantiles(), [&](const at::Tensor& x, double time) {
        const double bar = process.schedule().alpha_bar[static_cast<size_t>(time)];
        const at::Tensor eps = data.noise(x, bar);
        if (process.objective().prediction == Prediction::kNoise) return eps;
        const at::Tensor clean = (x - std::sqrt(1 - bar) * eps) / std::sqrt(bar);
        return std::sqrt(bar) * eps - std::sqrt(1 - bar) * clean;
      });
  // The flow of a normal distribution keeps quantiles.
  return (got - (data.mean + data.deviation * quantiles())).abs().max().item<double>();
}

}  // namespace

TEST_CASE("DDIM and DPM-Solver carry noise to the data, the latter in fewer steps") {
  for (const Prediction prediction : {Prediction::kNoise, Prediction::kV}) {
    const Process process({.prediction = prediction});
    const double slow = error_of(process, {.steps = 50, .spacing = StepSpacing::kTrailing}),
                 fine = error_of(process, {.steps = 500, .spacing = StepSpacing::kTrailing}),
                 quick = error_of(process, {.kind = SamplerKind::kDpmSolver,
                                            .steps = 50,
                                            .spacing = StepSpacing::kTrailing});
    CHECK(fine < .01);
    CHECK(fine < slow / 5);
    CHECK(quick < slow / 4);
  }
}

TEST_CASE("DPM-Solver++ 2M takes the published scheduler's steps") {
  // diffusers' DPMSolverMultistepScheduler, linear schedule, order 2, last sigma 0, times 900 ...
  // 0.
  const auto run = [](Prediction prediction) {
    std::vector<at::Tensor> x;
    sample(
        Process({.prediction = prediction}), {.kind = SamplerKind::kDpmSolver, .steps = 10},
        at::tensor({0.3, -1.2}, at::kDouble),
        [](const at::Tensor& at, double time) { return 0.5 * at + time / 1000; },
        [&](int64_t, const at::Tensor& now) { x.push_back(now); });
    return x;
  };
  const auto near = [](const at::Tensor& got, double a, double b) {
    CHECK(got[0].item<double>() == doctest::Approx(a).epsilon(2e-5));
    CHECK(got[1].item<double>() == doctest::Approx(b).epsilon(2e-5));
  };
  const auto noise = run(Prediction::kNoise), v = run(Prediction::kV);
  near(noise[0], -0.7218478266852231, -3.24291324490656);
  near(noise[4], -5.041323500179086, -13.040608822978191);
  near(noise[9], -5.092908278064169, -13.168141579332579);
  near(v[0], 0.2764102231879247, -1.2064176666961828);
  near(v[4], 0.01597697392160237, -1.1726509533530833);
  near(v[9], -0.018614756335848887, -1.066178189137356);
}

TEST_CASE("a zero terminal SNR can be sampled with v-prediction") {
  const Process process({.prediction = Prediction::kV, .zero_terminal = true});
  for (const SamplerKind kind : {SamplerKind::kDdim, SamplerKind::kDpmSolver}) {
    const at::Tensor got =
        sample(process, {.kind = kind, .steps = 10, .spacing = StepSpacing::kTrailing}, quantiles(),
               [](const at::Tensor& x, double) { return 0.1 * x; });
    CHECK(at::isfinite(got).all().item<bool>());
  }
}

TEST_CASE("a straight flow arrives in one Euler step") {
  const Process process({.prediction = Prediction::kVelocity});
  const at::Tensor start = quantiles();
  std::vector<double> times;
  const at::Tensor got = sample(process, {.kind = SamplerKind::kFlowEuler, .steps = 1}, start,
                                [&](const at::Tensor& x, double time) {
                                  times.push_back(time);
                                  return x - 3.0;
                                });
  CHECK(at::equal(got, at::full_like(start, 3.0)));
  CHECK(times == std::vector<double>{1000});
}

TEST_CASE("guidance on all channels, or on the first three as the original DiT") {
  const at::Tensor with = at::ones({1, 4, 1, 1}, at::kDouble) * 3, without = with / 3;
  CHECK(guided({.scale = 4}, with, without).flatten().equal(at::full({4}, 9.0, at::kDouble)));
  CHECK(guided({.scale = 4, .channels = 3}, with, without)
            .flatten()
            .equal(at::tensor({9., 9., 9., 3.}, at::kDouble)));
}

TEST_CASE("a sampler of the other kind is refused; names") {
  const Predictor none = [](const at::Tensor& x, double) { return x; };
  CHECK_THROWS_AS(
      sample(Process{Objective{}}, {.kind = SamplerKind::kFlowEuler}, quantiles(), none),
      UsageError);
  CHECK_THROWS_AS(sample(Process({.prediction = Prediction::kVelocity}), {}, quantiles(), none),
                  UsageError);
  CHECK(sampler_kind("ddim") == SamplerKind::kDdim);
  CHECK(sampler_kind("dpm_solver") == SamplerKind::kDpmSolver);
  CHECK(sampler_kind("flow_euler") == SamplerKind::kFlowEuler);
  CHECK(!sampler_kind("magic"));
}
