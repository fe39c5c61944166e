#pragma once
#include "lib/model/llava_config.h"
#include "lib/optim/param_store.h"
#include "lib/run/model_family.h"
#include "lib/run/recipe.h"

namespace mm::run {

/// The weights that a run begins with, in this order: drawn from the recipe's seed; of the
/// published directory model.from; of the run or checkpoint init.from (adapters that it has not
/// stay as drawn); of the adapter directory lora.from. The caller refreshes the compute copies.
/// Throws DataError or UsageError naming the tensor that does not fit, and for a start from a run
/// with adapters without [lora]: they would be lost.
void fill_start_weights(const Recipe& recipe, const ModelFamily& family, optim::ParamStore& params);

/// Of the Hugging Face directory model.from: vocabulary rows that it lacks as in
/// lib/model/vocab_rows.h; without any projector tensor, as mmckpt join writes it, the projector
/// stays as drawn, and image_newline where the projector has none: a line of the log says so.
/// Throws UsageError for a stored projector of another kind than model.projector.
void load_llava_weights(const Recipe& recipe, const model::LlavaConfig& config,
                        optim::ParamStore& params);
/// Of the PEFT directory lora.from.
void load_llava_adapters(const Recipe& recipe, const model::LlavaConfig& config,
                         optim::ParamStore& params);

}  // namespace mm::run
