#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace mm::model {

/// How the variance added at each step grows (Ho et al. 2020; Rombach et al. 2022; Nichol and
/// Dhariwal 2021). Names in recipes: "linear", "scaled_linear", "cosine".
enum class BetaCurve { kLinear, kScaledLinear, kCosine };
/// Nothing for other words.
std::optional<BetaCurve> beta_curve(std::string_view word);
const char* beta_curve_name(BetaCurve curve);

/// Even grid from 1e-4 to 0.02 (linear), squares of an even grid from sqrt(0.00085) to sqrt(0.012)
/// (scaled linear), or min(1 - f((t + 1) / T) / f(t / T), 0.999) with f(u) = cos^2((u + 0.008) /
/// 1.008 * pi / 2) (cosine). Throws UsageError for fewer than 2 steps.
std::vector<double> betas_of(BetaCurve curve, int64_t steps);

/// sqrt(alpha bar) shifted and scaled so that the last is 0 and the first stays: a last step
/// without signal (Lin et al., "Common diffusion noise schedules and sample steps are flawed",
/// 2024).
std::vector<double> zero_terminal_snr(const std::vector<double>& betas);

/// Tables of a discrete diffusion over T steps, float64. abar_t = product of (1 - beta).
struct NoiseSchedule {
  explicit NoiseSchedule(std::vector<double> betas);

  std::vector<double> betas, alpha_bar;
  std::vector<double> sqrt_alpha_bar, sqrt_one_minus;  ///< of x_0 and of the noise in x_t
  std::vector<double> log_beta;
  /// log of the variance of q(x_{t-1} | x_t, x_0); at t = 0, where it is 0, the value of t = 1.
  std::vector<double> posterior_log_variance;
  std::vector<double> posterior_clean, posterior_noisy;  ///< its mean: factors of x_0 and x_t

  int64_t steps() const { return static_cast<int64_t>(betas.size()); }
  double snr(int64_t t) const { return alpha_bar[t] / (1 - alpha_bar[t]); }
};

/// Which of T training steps `count` sampling steps visit, highest first, as diffusers' schedulers
/// space them ("leading" without offset, "trailing", "linspace").
enum class StepSpacing { kLeading, kTrailing, kLinspace };
std::optional<StepSpacing> step_spacing(std::string_view word);
/// Throws UsageError unless 1 <= count <= T.
std::vector<int64_t> sampling_steps(StepSpacing spacing, int64_t training_steps, int64_t count);

// Flows: sigma = 1 is noise, 0 the picture.

/// s u / (1 + (s - 1) u): shift s > 1 spends more time on noise (field case C54).
double shifted_sigma(double u, double shift);
/// Sigma of index i of a table of `steps` from sigma = 1 down: u = (steps - i) / steps, shifted.
double table_sigma(int64_t index, int64_t steps, double shift);
/// Where sampling stops: `count` + 1 sigmas, the last one 0. Shifted once from an even grid from 1
/// to 1 / count; with `twice`, diffusers' rule: an even grid between the largest and smallest of
/// the shifted table of `training_steps`, shifted once more.
std::vector<double> sampling_sigmas(int64_t count, double shift);
std::vector<double> sampling_sigmas_twice(int64_t count, double shift, int64_t training_steps);

}  // namespace mm::model
