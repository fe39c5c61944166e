#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "lib/model/diffusion_input.h"
#include "lib/model/noise_schedule.h"

namespace mm::model {

/// What the model is asked to say about a noisy picture.
enum class Prediction {
  kNoise,     ///< epsilon
  kV,         ///< sqrt(abar) noise - sqrt(1 - abar) clean (Salimans and Ho 2022)
  kVelocity,  ///< noise - clean: of flows
};

/// Density of u in [0, 1] of a flow's draw, before the shift (Esser et al. 2024, section 3.1).
enum class FlowDensity { kLogitNormal, kUniform, kMode, kCosmap };
/// What a flow's squared error is multiplied by: 1, sigma^-2 (of sigma below 1 / T that of 1 / T,
/// the least that a table of T entries has: s = 0 would weigh without limit), 2 / (pi (1 - 2 s +
/// 2 s^2)).
enum class FlowWeight { kNone, kSigmaSquare, kCosmap };

/// How a diffusion model is trained. Convention of flows: x_s = (1 - s) clean + s noise, target
/// noise - clean; s = 1 is noise (field case C54).
struct Objective {
  Prediction prediction = Prediction::kNoise;

  // Discrete diffusion (kNoise, kV).
  BetaCurve curve = BetaCurve::kLinear;
  int64_t steps = 1000;  ///< T; of flows the scale of the time that the model sees
  bool zero_terminal = false;
  /// Adds the variational bound of the second half of the output channels, in bits (Nichol and
  /// Dhariwal 2021); its mean is that of the prediction without a gradient (field case C53).
  bool variational_bound = false;
  double min_snr_gamma = 0;  ///< Hang et al. 2023; 0: off

  // Flows (kVelocity).
  FlowDensity density = FlowDensity::kLogitNormal;
  double density_mean = 0, density_deviation = 1;  ///< of kLogitNormal
  double mode_scale = 1.29;
  double shift = 1;
  /// Patches of the picture that `shift` is of: one of n patches has shift * sqrt(n / that), as
  /// much of it is lost at each sigma (Esser et al. 2024, equation 23). 0: all have `shift`.
  double shift_patches = 0;
  /// Sigma is one of `steps` entries of the shifted table, as diffusers draws it.
  bool from_table = false;
  FlowWeight weight = FlowWeight::kNone;

  /// A picture's loss is the mean over its elements; with `per_element` their sum, and the step
  /// divides by the count of elements of all pictures: a large picture then weighs more.
  bool per_element = false;

  bool is_flow() const { return prediction == Prediction::kVelocity; }
  /// What the shift of a picture of so many patches is multiplied by.
  double shift_factor(int64_t patches) const;
  /// Throws UsageError, naming the value, for what does not go together.
  void check() const;
};

/// An objective with its tables.
class Process {
 public:
  /// Throws as Objective::check.
  explicit Process(const Objective& objective);

  const Objective& objective() const { return objective_; }
  const NoiseSchedule& schedule() const { return schedule_; }

  /// x_t of clean pictures, in their dtype: from `input`'s noise and its times, or sigmas in flows.
  at::Tensor noisy(const at::Tensor& clean, const DiffusionInput& input) const;

  /// [N] each: of the picture's mean (sum with per_element), without DiffusionInput::weights.
  struct Losses {
    at::Tensor total;          ///< with a gradient
    at::Tensor square;         ///< weighted squared error, without a gradient
    at::Tensor variance_term;  ///< the bound, without a gradient; zeros where there is none
  };
  /// `output` [N, C or 2C, H, W] in the dtype of `clean` [N, C, H, W]. The second half of the
  /// channels is used by the variational bound alone.
  Losses losses(const at::Tensor& output, const at::Tensor& clean,
                const DiffusionInput& input) const;

  /// Clean picture and noise that a prediction at step t (of all pictures) stands for; with
  /// `schedule().alpha_bar`. Not for flows.
  struct Split {
    at::Tensor clean, noise;
  };
  Split split(const at::Tensor& x, const at::Tensor& prediction, double alpha_bar) const;

 private:
  at::Tensor target(const at::Tensor& clean, const DiffusionInput& input) const;
  at::Tensor error_weight(const at::Tensor& like, const DiffusionInput& input) const;
  at::Tensor bound(const at::Tensor& output, const at::Tensor& clean,
                   const DiffusionInput& input) const;

  Objective objective_;
  NoiseSchedule schedule_;
};

}  // namespace mm::model
