#pragma once
#include <vector>

#include "lib/data/epoch_plan.h"
#include "lib/optim/ema.h"
#include "lib/optim/param_store.h"
#include "lib/run/recipe.h"
#include "lib/step/builder.h"

namespace mm::run {

/// Dtypes of masters and of each part's forward and backward, from [precision].
optim::Precision run_precision(const Recipe& recipe);

/// Whether some part counts in fp16: then the loss is scaled.
bool counts_in_fp16(const optim::Precision& precision);

/// One flag per parameter: whether stage `first` or a later one trains it. Those need masters from
/// there on.
std::vector<bool> trained_from(const Recipe& recipe, const model::Model& model, size_t first);

/// [ema].
optim::EmaOptions average_options(const EmaRecipe& recipe);

/// How a stage's samples become steps: what trainer and check plan with.
data::PlanOptions plan_options(const Recipe& recipe, const StageRecipe& stage);

/// What the recipe says about a stage's step program; buckets, ranks and micro-batches are the
/// caller's.
step::BuildOptions build_options(const Recipe& recipe, const StageRecipe& stage,
                                 const std::vector<bool>& trainable);

}  // namespace mm::run
