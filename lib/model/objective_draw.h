#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/base/random.h"
#include "lib/model/objective.h"

// All randomness of a diffusion step as pure functions of (seed, epoch, sample id, purpose): the
// same whatever rank, micro-batch or resumed run meets the sample (law 1).
namespace mm::model {

/// The stream of one sample in one epoch. Purposes in use: "time", "noise", "caption_drop",
/// "latent_noise".
Philox sample_stream(uint64_t seed, std::string_view purpose, uint64_t epoch, uint64_t sample);

/// Where on the way from picture to noise a sample is trained.
struct DrawnTime {
  double time = 0;   ///< of DiffusionInput::times: step in [0, T), or T * sigma
  double sigma = 0;  ///< of DiffusionInput::sigmas; 0 where there is no flow
};

/// Uniform steps, or sigma by the objective's density and shift.
DrawnTime draw_time(const Objective& objective, const Philox& stream);
/// The same of a u in [0, 1) given from outside; `u` is uniform for discrete diffusion, the draw
/// before shift or table for flows.
DrawnTime time_of(const Objective& objective, double u);
/// `count` evenly spread times, at the middles of equal parts of [0, 1]: a validation loss that
/// two runs can be compared by.
std::vector<DrawnTime> fixed_times(const Objective& objective, int64_t count);

/// Fills `out` (contiguous, fp32 or float64, CPU) with standard normal numbers: element i is the
/// stream's i-th, rounded once.
void fill_normal(at::Tensor out, const Philox& stream);

/// Whether the sample's caption or label is left out, with this probability.
bool draws_drop(const Philox& stream, double probability);

}  // namespace mm::model
