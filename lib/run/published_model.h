#pragma once
#include <filesystem>

#include "lib/run/trained_model.h"

namespace mm::run {

/// A Hugging Face LLaVA directory as a model to ask, in fp32: config.json, safetensors,
/// tokenizer.json or tokenizer.model, preprocessor_config.json (lib/run/hf_pictures.h),
/// generation_config.json where it is there. Its questions are asked in the "vicuna_v1" template.
/// Throws DataError naming the file for what is missing or does not fit: another picture side, a
/// tokenizer whose "<image>" is not the configuration's image token, a family whose pictures have
/// several tiles.
TrainedModel open_published(const std::filesystem::path& directory);

/// open_published for a directory with a config.json, else open_trained.
TrainedModel open_model(const std::filesystem::path& path);

}  // namespace mm::run
