#pragma once
#include <optional>

#include "lib/image/image.h"
#include "lib/run/comm.h"
#include "lib/run/model_family.h"

namespace mm::run {

/// Whether [sample] asks for a grid after this step.
bool grid_is_due(const SampleRecipe& sample, int64_t global_step);

/// Whether this rank draws rows of the grid: ranks take them in turn, or rank 0 takes all where
/// drawing takes models that the other ranks do not load (ModelFamily::every_rank_draws).
bool draws_rows(const SampleRecipe& sample, const ModelFamily& family, int rank);

/// [sample]'s grid by weights in training, the same for any number of ranks; on rank 0, nothing on
/// the others. Collective over comm.control; no rank waits for another's drawing
/// (patient_work.h). `params`: read on ranks that draw.
std::optional<image::Image> draw_scheduled_grid(const Recipe& recipe, const ModelFamily& family,
                                                const model::ParamView& params, Comm& comm);

}  // namespace mm::run
