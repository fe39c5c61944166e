#include "lib/model/objective.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lib/base/error.h"

namespace mm::model {
namespace {

// Entries [N, 1, 1, 1] of a table at the pictures' steps, in the dtype of `like`.
at::Tensor entries(const std::vector<double>& table, const at::Tensor& times,
                   const at::Tensor& like) {
  const at::Tensor steps = times.to(at::kCPU, at::kLong);
  if (steps.numel() > 0) {
    MM_CHECK(steps.min().item<int64_t>() >= 0 &&
                 steps.max().item<int64_t>() < static_cast<int64_t>(table.size()),
             "a time outside of the {} steps", table.size());
  }
  return at::tensor(table, at::kDouble)
      .index_select(0, steps)
      .to(like.options().requires_grad(false))
      .view({-1, 1, 1, 1});
}

at::Tensor sigmas_of(const DiffusionInput& input, const at::Tensor& like) {
  return input.sigmas.to(like.options().requires_grad(false)).view({-1, 1, 1, 1});
}

// Mean over all but the first dimension; 0 pictures give an empty tensor.
at::Tensor mean_of_pictures(const at::Tensor& x) { return x.mean({1, 2, 3}); }

// The normal distribution function by its tanh approximation, as the published code has it.
at::Tensor normal_cdf(const at::Tensor& z) {
  const double scale = std::sqrt(2 / std::numbers::pi);
  return 0.5 * (1 + at::tanh(scale * (z + 0.044715 * z.pow(3))));
}

// Log-likelihood of x in 8-bit bins of width 2/255 on [-1, 1], the outer ones open.
at::Tensor discretised_log_likelihood(const at::Tensor& x, const at::Tensor& mean,
                                      const at::Tensor& log_scale) {
  const at::Tensor centred = x - mean, inverse = at::exp(-log_scale);
  const at::Tensor above = normal_cdf(inverse * (centred + 1.0 / 255)),
                   below = normal_cdf(inverse * (centred - 1.0 / 255));
  const auto log_of = [](const at::Tensor& p) { return at::log(p.clamp_min(1e-12)); };
  return at::where(x < -0.999, log_of(above),
                   at::where(x > 0.999, log_of(1 - below), log_of(above - below)));
}

}  // namespace

void Objective::check() const {
  if (steps < 2) throw UsageError("objective: {} diffusion steps, expected at least 2", steps);
  if (is_flow() && (variational_bound || min_snr_gamma > 0 || zero_terminal)) {
    throw UsageError(
        "objective: the variational bound, min-SNR and a zero terminal SNR belong to discrete "
        "diffusion, not to a flow");
  }
  if (zero_terminal && prediction == Prediction::kNoise)
    throw UsageError("objective: a last step without signal needs v-prediction");
  if (!(min_snr_gamma >= 0)) throw UsageError("objective: min-SNR gamma of {}", min_snr_gamma);
  if (!(shift > 0)) throw UsageError("objective: shift of {}, expected more than 0", shift);
  if (!(shift_patches >= 0))
    throw UsageError("objective: shift of a picture of {} patches", shift_patches);
  if (!(density_deviation > 0))
    throw UsageError("objective: deviation of {}, expected more than 0", density_deviation);
}

double Objective::shift_factor(int64_t patches) const {
  return shift_patches > 0 ? std::sqrt(static_cast<double>(patches) / shift_patches) : 1;
}

Process::Process(const Objective& objective)
    : objective_(objective), schedule_([&] {
        objective.check();
        std::vector<double> betas = betas_of(objective.curve, objective.steps);
        return NoiseSchedule(objective.zero_terminal ? zero_terminal_snr(betas) : betas);
      }()) {}

at::Tensor Process::noisy(const at::Tensor& clean, const DiffusionInput& input) const {
  const at::Tensor noise = input.noise.to(clean.scalar_type());
  if (objective_.is_flow()) {
    const at::Tensor s = sigmas_of(input, clean);
    return (1 - s) * clean + s * noise;
  }
  return entries(schedule_.sqrt_alpha_bar, input.times, clean) * clean +
         entries(schedule_.sqrt_one_minus, input.times, clean) * noise;
}

at::Tensor Process::target(const at::Tensor& clean, const DiffusionInput& input) const {
  const at::Tensor noise = input.noise.to(clean.scalar_type());
  switch (objective_.prediction) {
    case Prediction::kNoise:
      return noise;
    case Prediction::kVelocity:
      return noise - clean;
    case Prediction::kV:
      return entries(schedule_.sqrt_alpha_bar, input.times, clean) * noise -
             entries(schedule_.sqrt_one_minus, input.times, clean) * clean;
  }
  throw InternalError("prediction {} is unknown", static_cast<int>(objective_.prediction));
}

at::Tensor Process::error_weight(const at::Tensor& like, const DiffusionInput& input) const {
  if (objective_.is_flow()) {
    const at::Tensor s = sigmas_of(input, like).flatten();
    if (objective_.weight == FlowWeight::kSigmaSquare)
      return s.clamp_min(1 / static_cast<double>(objective_.steps)).pow(-2);
    if (objective_.weight == FlowWeight::kCosmap)
      return 2 / (std::numbers::pi * (1 - 2 * s + 2 * s.square()));
    return at::ones_like(s);
  }
  std::vector<double> weights(schedule_.betas.size(), 1);
  if (objective_.min_snr_gamma > 0) {
    const bool v = objective_.prediction == Prediction::kV;
    for (size_t t = 0; t < weights.size(); ++t) {
      const double snr = schedule_.snr(static_cast<int64_t>(t));
      weights[t] = std::min(snr, objective_.min_snr_gamma) / (v ? snr + 1 : snr);
    }
  }
  return entries(weights, input.times, like).flatten();
}

Process::Split Process::split(const at::Tensor& x, const at::Tensor& prediction,
                              double alpha_bar) const {
  const double signal = std::sqrt(alpha_bar), noise = std::sqrt(1 - alpha_bar);
  if (objective_.prediction == Prediction::kNoise)
    return {(x - noise * prediction) / signal, prediction};
  return {signal * x - noise * prediction, noise * x + signal * prediction};
}

at::Tensor Process::bound(const at::Tensor& output, const at::Tensor& clean,
                          const DiffusionInput& input) const {
  const auto at_step = [&](const std::vector<double>& table) {
    return entries(table, input.times, clean);
  };
  const int64_t channels = clean.size(1);
  const at::Tensor prediction = output.narrow(1, 0, channels).detach(),
                   share = (output.narrow(1, channels, channels) + 1) / 2;
  const at::Tensor x = noisy(clean, input);
  const at::Tensor posterior = at_step(schedule_.posterior_log_variance);
  const at::Tensor log_variance = share * at_step(schedule_.log_beta) + (1 - share) * posterior;
  const at::Tensor signal = at_step(schedule_.sqrt_alpha_bar),
                   spread = at_step(schedule_.sqrt_one_minus);
  const at::Tensor guess = objective_.prediction == Prediction::kNoise
                               ? (x - spread * prediction) / signal
                               : signal * x - spread * prediction;
  const at::Tensor of_clean = at_step(schedule_.posterior_clean),
                   of_noisy = at_step(schedule_.posterior_noisy);
  const at::Tensor mean = of_clean * guess + of_noisy * x, truth = of_clean * clean + of_noisy * x;
  const at::Tensor kl = 0.5 * (-1 + log_variance - posterior + at::exp(posterior - log_variance) +
                               (truth - mean).square() * at::exp(-log_variance));
  const at::Tensor likelihood = discretised_log_likelihood(clean, mean, 0.5 * log_variance);
  const at::Tensor first = input.times.to(clean.device()).eq(0);
  return at::where(first, -mean_of_pictures(likelihood), mean_of_pictures(kl)) / std::numbers::ln2;
}

Process::Losses Process::losses(const at::Tensor& output, const at::Tensor& clean,
                                const DiffusionInput& input) const {
  const int64_t channels = clean.size(1);
  MM_CHECK(output.size(1) == channels ||
               (output.size(1) == 2 * channels && !objective_.is_flow()) ||
               !objective_.variational_bound,
           "{} output channels for {}", output.size(1), channels);
  const at::Tensor error = output.narrow(1, 0, channels) - target(clean, input);
  const double scale =
      objective_.per_element ? static_cast<double>(channels * clean.size(2) * clean.size(3)) : 1.0;
  const at::Tensor square = mean_of_pictures(error.square()) * error_weight(clean, input) * scale;
  if (!objective_.variational_bound)
    return {square, square.detach(), at::zeros_like(square.detach())};
  const at::Tensor variance = bound(output, clean, input) * scale;
  return {square + variance, square.detach(), variance.detach()};
}

}  // namespace mm::model
