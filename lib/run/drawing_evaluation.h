#pragma once
#include <ATen/core/Tensor.h>

#include "lib/run/eval_result.h"
#include "lib/run/eval_samples.h"
#include "lib/run/trained_diffusion.h"

namespace mm::run {

/// Frechet distance of two sets of features [n, D] and [m, D], as normal distributions (Heusel et
/// al. 2017, equation 6): |mu1 - mu2|^2 + tr(C1 + C2 - 2 (C1 C2)^(1/2)), covariances with n - 1.
/// Float64; n, m >= 2.
double frechet_distance(const at::Tensor& a, const at::Tensor& b);

/// Draws a picture for the name of each sample of `names`, once by the trained and once by the
/// untrained weights, and asks `judge`, a LLaVA that knows pictures of that kind, what it sees:
/// rows "drawn", "drawn, another's name" (the same pictures, each judged by the name of another),
/// "drawn by untrained weights", and "real, at this size", the bound of what can be reached.
/// tasks.frechet holds distances to the real pictures in the mean features of the judge's vision
/// tower. `names` are samples of the judge's preparation.
EvalResult evaluate_drawings(const TrainedDiffusion& trained, const TrainedModel& judge,
                             const EvalSamples& names, const DrawOptions& options,
                             int64_t max_new_tokens);

}  // namespace mm::run
