#pragma once
#include <ATen/core/ScalarType.h>

#include <vector>

#include "lib/data/dataset_manifest.h"
#include "lib/model/block.h"
#include "lib/model/llava_config.h"
#include "lib/run/recipe.h"

namespace mm::run {

/// The model's configuration from recipe and data: sizes from [model] (or the Hugging Face
/// directory's config.json, that of a llava directory with LLaVA 1.6's grids where the family is
/// llava_next), vocabulary and special ids from the data sets' tokenizer. Throws
/// UsageError naming both sides when data sets disagree with one another (another tokenizer or
/// picture size) or with the model (picture side, patch, vocabulary).
model::LlavaConfig configure_model(const Recipe& recipe,
                                   const std::vector<data::DatasetManifest>& sets);

/// build_llava with the recipe's initial spread and adapters.
model::Model build_model(const Recipe& recipe, const model::LlavaConfig& config);

/// One flag per parameter: its part is among `parts`, and some segment reads it; of a part with
/// adapters only these.
std::vector<bool> trainable_flags(const model::Model& model, const std::vector<std::string>& parts);

/// Dtype of forward and backward: "auto" is bf16 where the CPU multiplies it fast, else fp32.
at::ScalarType compute_dtype(const std::string& word);

}  // namespace mm::run
