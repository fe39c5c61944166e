#pragma once
#include <filesystem>

#include "lib/run/trained_model.h"

namespace mm::run {

/// A Hugging Face directory of LLaVA, LLaVA-NeXT, OneVision or Qwen2.5-VL as a model to ask, in
/// fp32: config.json, safetensors, tokenizer.json or tokenizer.model, preprocessor_config.json
/// (lib/run/hf_pictures.h), generation_config.json where it is there. Its questions are asked in
/// the "qwen2_vl" template where "<|image_pad|>" stands for pictures, else in "chatml" or "llama3"
/// where the tokenizer has their marks, else in "mistral" where the decoder is Mistral's, else in
/// "vicuna_v1". Throws DataError naming the file for what is missing or does not fit: another
/// picture side, patch or grid, a grid of over 15 tiles a side, a configuration whose mark of a
/// picture is neither the tokenizer's "<image>" nor its "<|image_pad|>".
TrainedModel open_published(const std::filesystem::path& directory);

/// Whether `path` is such a directory by its config.json, and no run.
bool is_published(const std::filesystem::path& path);

/// open_published or open_trained.
TrainedModel open_model(const std::filesystem::path& path);

}  // namespace mm::run
