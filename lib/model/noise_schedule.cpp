#include "lib/model/noise_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lib/base/error.h"

namespace mm::model {
namespace {

// `count` numbers from `first` to `last`, both among them.
std::vector<double> even_grid(double first, double last, int64_t count) {
  std::vector<double> grid(static_cast<size_t>(count), first);
  for (int64_t i = 1; i < count; ++i)
    grid[i] = first + (last - first) * static_cast<double>(i) / static_cast<double>(count - 1);
  if (count > 1) grid.back() = last;
  return grid;
}

double cosine_alpha_bar(double u) {
  const double c = std::cos((u + 0.008) / 1.008 * std::numbers::pi / 2);
  return c * c;
}

// numpy rounds halves to even.
int64_t round_to_even(double x) { return static_cast<int64_t>(std::nearbyint(x)); }

}  // namespace

std::optional<BetaCurve> beta_curve(std::string_view word) {
  if (word == "linear") return BetaCurve::kLinear;
  if (word == "scaled_linear") return BetaCurve::kScaledLinear;
  if (word == "cosine") return BetaCurve::kCosine;
  return std::nullopt;
}

const char* beta_curve_name(BetaCurve curve) {
  switch (curve) {
    case BetaCurve::kLinear:
      return "linear";
    case BetaCurve::kScaledLinear:
      return "scaled_linear";
    case BetaCurve::kCosine:
      return "cosine";
  }
  throw InternalError("curve {} has no name", static_cast<int>(curve));
}

std::vector<double> betas_of(BetaCurve curve, int64_t steps) {
  if (steps < 2) throw UsageError("a diffusion needs at least 2 steps, not {}", steps);
  if (curve == BetaCurve::kLinear) return even_grid(1e-4, 0.02, steps);
  std::vector<double> betas;
  if (curve == BetaCurve::kScaledLinear) {
    betas = even_grid(std::sqrt(0.00085), std::sqrt(0.012), steps);
    for (double& beta : betas) beta *= beta;
    return betas;
  }
  const auto total = static_cast<double>(steps);
  for (int64_t t = 0; t < steps; ++t) {
    const auto at = static_cast<double>(t);
    betas.push_back(
        std::min(1 - cosine_alpha_bar((at + 1) / total) / cosine_alpha_bar(at / total), 0.999));
  }
  return betas;
}

std::vector<double> zero_terminal_snr(const std::vector<double>& betas) {
  std::vector<double> root = NoiseSchedule(betas).sqrt_alpha_bar, out;
  const double first = root.front(), last = root.back();
  double previous = 1;
  for (double r : root) {
    const double scaled = (r - last) * first / (first - last), bar = scaled * scaled;
    out.push_back(1 - bar / previous);
    previous = bar;
  }
  return out;
}

NoiseSchedule::NoiseSchedule(std::vector<double> with) : betas(std::move(with)) {
  double bar = 1;
  for (double beta : betas) {
    const double before = bar;
    bar *= 1 - beta;
    alpha_bar.push_back(bar);
    sqrt_alpha_bar.push_back(std::sqrt(bar));
    sqrt_one_minus.push_back(std::sqrt(1 - bar));
    log_beta.push_back(std::log(beta));
    posterior_log_variance.push_back(std::log(beta * (1 - before) / (1 - bar)));
    posterior_clean.push_back(beta * std::sqrt(before) / (1 - bar));
    posterior_noisy.push_back((1 - before) * std::sqrt(1 - beta) / (1 - bar));
  }
  if (posterior_log_variance.size() > 1) posterior_log_variance[0] = posterior_log_variance[1];
}

std::optional<StepSpacing> step_spacing(std::string_view word) {
  if (word == "leading") return StepSpacing::kLeading;
  if (word == "trailing") return StepSpacing::kTrailing;
  if (word == "linspace") return StepSpacing::kLinspace;
  return std::nullopt;
}

std::vector<int64_t> sampling_steps(StepSpacing spacing, int64_t training_steps, int64_t count) {
  if (count < 1 || count > training_steps)
    throw UsageError("{} sampling steps of {} training steps", count, training_steps);
  std::vector<int64_t> steps;
  const auto total = static_cast<double>(training_steps), n = static_cast<double>(count);
  const std::vector<double> grid = even_grid(0, total - 1, count);
  for (int64_t i = count - 1; i >= 0; --i) {
    switch (spacing) {
      case StepSpacing::kLeading:
        steps.push_back(i * (training_steps / count));
        break;
      case StepSpacing::kTrailing:
        steps.push_back(round_to_even(total - total / n * static_cast<double>(count - 1 - i)) - 1);
        break;
      case StepSpacing::kLinspace:
        steps.push_back(round_to_even(grid[i]));
        break;
    }
  }
  return steps;
}

double shifted_sigma(double u, double shift) { return shift * u / (1 + (shift - 1) * u); }

double table_sigma(int64_t index, int64_t steps, double shift) {
  return shifted_sigma(static_cast<double>(steps - index) / static_cast<double>(steps), shift);
}

std::vector<double> sampling_sigmas(int64_t count, double shift) {
  if (count < 1) throw UsageError("{} sampling steps", count);
  std::vector<double> sigmas = even_grid(1, 1 / static_cast<double>(count), count);
  for (double& sigma : sigmas) sigma = shifted_sigma(sigma, shift);
  sigmas.push_back(0);
  return sigmas;
}

std::vector<double> sampling_sigmas_twice(int64_t count, double shift, int64_t training_steps) {
  if (count < 1) throw UsageError("{} sampling steps", count);
  std::vector<double> sigmas =
      even_grid(table_sigma(0, training_steps, shift),
                table_sigma(training_steps - 1, training_steps, shift), count);
  for (double& sigma : sigmas) sigma = shifted_sigma(sigma, shift);
  sigmas.push_back(0);
  return sigmas;
}

}  // namespace mm::model
