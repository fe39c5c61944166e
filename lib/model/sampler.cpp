#include "lib/model/sampler.h"

#include <ATen/ATen.h>

#include <cmath>

#include "lib/base/error.h"

namespace mm::model {
namespace {

/// Signal and noise of x at a step: x = signal * clean + noise * eps; `log_ratio` = log(signal /
/// noise).
struct Level {
  double alpha_bar, signal, noise, log_ratio;
};

Level level_of(double alpha_bar) {
  const double signal = std::sqrt(alpha_bar), noise = std::sqrt(1 - alpha_bar);
  return {alpha_bar, signal, noise, std::log(signal) - std::log(noise)};
}

/// What a run of the discrete samplers goes through: `steps` and the levels at and behind them.
struct Way {
  std::vector<int64_t> steps;
  std::vector<Level> levels;  ///< one more than steps: the picture
};

Way way_of(const Process& process, const SamplerOptions& options) {
  Way way{sampling_steps(options.spacing, process.schedule().steps(), options.steps), {}};
  for (int64_t step : way.steps) way.levels.push_back(level_of(process.schedule().alpha_bar[step]));
  way.levels.push_back(level_of(1));
  return way;
}

at::Tensor ddim_step(const Process::Split& guess, const Level& to) {
  return to.signal * guess.clean + to.noise * guess.noise;
}

/// The clean picture that DPM-Solver++ steps towards, extrapolated from the last two guesses.
at::Tensor extrapolated(const at::Tensor& guess, const at::Tensor& before, double ratio) {
  return guess + (guess - before) * (0.5 * ratio);
}

at::Tensor sample_dpm_solver(const Process& process, const Way& way, at::Tensor x,
                             const Predictor& predict, const StepWatch& watch) {
  at::Tensor before;
  double last_jump = 0;
  for (size_t i = 0; i < way.steps.size(); ++i) {
    const Level &from = way.levels[i], &to = way.levels[i + 1];
    const at::Tensor guess =
        process.split(x, predict(x, static_cast<double>(way.steps[i])), from.alpha_bar).clean;
    const double jump = to.log_ratio - from.log_ratio;
    const bool last = i + 1 == way.steps.size();
    const at::Tensor towards =
        i == 0 || last ? guess : extrapolated(guess, before, jump / last_jump);
    x = (to.noise / from.noise) * x + (to.signal * -std::expm1(-jump)) * towards;
    before = guess;
    last_jump = jump;
    if (watch) watch(static_cast<int64_t>(i), x);
  }
  return x;
}

at::Tensor sample_ddim(const Process& process, const Way& way, at::Tensor x,
                       const Predictor& predict, const StepWatch& watch) {
  for (size_t i = 0; i < way.steps.size(); ++i) {
    const Process::Split guess =
        process.split(x, predict(x, static_cast<double>(way.steps[i])), way.levels[i].alpha_bar);
    x = ddim_step(guess, way.levels[i + 1]);
    if (watch) watch(static_cast<int64_t>(i), x);
  }
  return x;
}

at::Tensor sample_flow(const Process& process, const SamplerOptions& options, at::Tensor x,
                       const Predictor& predict, const StepWatch& watch) {
  const int64_t scale = process.objective().steps;
  const std::vector<double> sigmas =
      options.shift_twice ? sampling_sigmas_twice(options.steps, options.shift, scale)
                          : sampling_sigmas(options.steps, options.shift);
  for (size_t i = 0; i + 1 < sigmas.size(); ++i) {
    x = x + (sigmas[i + 1] - sigmas[i]) * predict(x, sigmas[i] * static_cast<double>(scale));
    if (watch) watch(static_cast<int64_t>(i), x);
  }
  return x;
}

}  // namespace

std::optional<SamplerKind> sampler_kind(std::string_view word) {
  if (word == "ddim") return SamplerKind::kDdim;
  if (word == "dpm_solver") return SamplerKind::kDpmSolver;
  if (word == "flow_euler") return SamplerKind::kFlowEuler;
  return std::nullopt;
}

at::Tensor sample(const Process& process, const SamplerOptions& options, const at::Tensor& start,
                  const Predictor& predict, const StepWatch& watch) {
  const at::NoGradGuard no_grad;
  const bool flow = options.kind == SamplerKind::kFlowEuler;
  if (flow != process.objective().is_flow()) {
    throw UsageError(
        "sampler: ddim and dpm_solver belong to noise and v-prediction, flow_euler to a flow");
  }
  if (flow) return sample_flow(process, options, start, predict, watch);
  const Way way = way_of(process, options);
  return options.kind == SamplerKind::kDdim
             ? sample_ddim(process, way, start, predict, watch)
             : sample_dpm_solver(process, way, start, predict, watch);
}

at::Tensor guided(const Guidance& guidance, const at::Tensor& conditional,
                  const at::Tensor& unconditional) {
  const at::Tensor all = unconditional + guidance.scale * (conditional - unconditional);
  const int64_t channels = guidance.channels;
  if (channels <= 0 || channels >= all.size(1)) return all;
  return at::cat(
      {all.narrow(1, 0, channels), conditional.narrow(1, channels, all.size(1) - channels)}, 1);
}

}  // namespace mm::model
