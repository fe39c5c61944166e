#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "lib/model/objective.h"

namespace mm::model {

/// What a model says about x [N, C, H, W] at a time (DiffusionInput::times): [N, C, H, W], of the
/// objective's prediction.
using Predictor = std::function<at::Tensor(const at::Tensor& x, double time)>;

/// How noise becomes a picture. Names: "ddim" (Song et al. 2021, eta = 0), "dpm_solver"
/// (DPM-Solver++ 2M, Lu et al. 2022, first order at both ends), "flow_euler".
enum class SamplerKind { kDdim, kDpmSolver, kFlowEuler };
std::optional<SamplerKind> sampler_kind(std::string_view word);

struct SamplerOptions {
  SamplerKind kind = SamplerKind::kDdim;
  int64_t steps = 50;
  StepSpacing spacing = StepSpacing::kLeading;  ///< of the discrete ones
  double shift = 1;                             ///< of flow_euler
  bool shift_twice = false;                     ///< diffusers' rule (sampling_sigmas_twice)
};

/// Called behind each step with the step's number from 0 and x.
using StepWatch = std::function<void(int64_t, const at::Tensor&)>;

/// From `start` [N, C, H, W] standard normal to pictures, without gradients. Nothing is clipped.
/// Throws UsageError when sampler and objective do not go together, or for a bad number of steps.
at::Tensor sample(const Process& process, const SamplerOptions& options, const at::Tensor& start,
                  const Predictor& predict, const StepWatch& watch = {});

/// Classifier-free guidance (Ho and Salimans 2022): unconditional + scale (conditional -
/// unconditional) on the first `channels` channels (0: all; the original DiT: 3), the conditional
/// prediction on the others.
struct Guidance {
  double scale = 1;
  int64_t channels = 0;
};
at::Tensor guided(const Guidance& guidance, const at::Tensor& conditional,
                  const at::Tensor& unconditional);

}  // namespace mm::model
