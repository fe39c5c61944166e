#pragma once
#include "lib/model/diffusion_config.h"
#include "lib/model/eager.h"
#include "lib/model/sampler.h"

namespace mm::model {

/// A model with the conditions of N pictures, asked about noise. `condition` holds what the family
/// reads: labels, stored captions, or tokens and cu_seqlens, pooled, sizes; not noisy, times.
struct ConditionedModel {
  const Model& model;
  const DiffusionConfig& config;
  const Objective& objective;
  const ParamView& params;
  Batch condition;
};

/// Runs the model eagerly. With a guidance scale other than 1 every picture is asked about twice in
/// one batch, with its condition and with none (the label of no class, the null caption). What it
/// refers to must outlive it.
Predictor model_predictor(const ConditionedModel& asked, const Guidance& guidance);

/// The micro-batch twice: as it is, then without its conditions.
Batch with_and_without(const DiffusionConfig& config, const Batch& condition, int64_t pictures);

}  // namespace mm::model
