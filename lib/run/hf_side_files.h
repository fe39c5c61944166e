#pragma once
#include <filesystem>

#include "lib/data/dataset_manifest.h"
#include "lib/model/llava_config.h"
#include "lib/run/recipe.h"

namespace mm::run {

/// Fills RUN/hf with what transformers wants beside config.json and the weights, for mmckpt convert
/// to copy: of a run that starts from model.from, that directory's settings (tokenizer, processor,
/// generation, chat template; not config.json), pictures as the run trained on them (normalisation,
/// preparation of `set`) where the directory says otherwise; of another, preprocessor_config.json
/// and processor_config.json from the data set's preparation, and tokenizer_config.json. A
/// directory that is there stays. Throws IoError, and DataError for settings that are no JSON.
void write_hf_side_files(const std::filesystem::path& run, const Recipe& recipe,
                         const model::LlavaConfig& config, const data::DatasetManifest& set);

}  // namespace mm::run
