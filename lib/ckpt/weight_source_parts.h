#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "lib/ckpt/hf_index.h"
#include "lib/ckpt/weight_source.h"

namespace mm::ckpt {

// What open_weights is made of; weight_source.h is the door.

/// A Hugging Face or diffusers directory.
WeightSource from_hugging_face(const std::filesystem::path& directory);
/// A checkpoint of the papers' own code, one file; `config` empty: its shapes imply it.
WeightSource from_original(const std::filesystem::path& path, const std::filesystem::path& config);

/// Sorts by name, refuses a name twice, drops copies of tied tensors (field case C47).
void sort_and_check(WeightSource& source, const std::string& origin);

/// "model_type" of a config.json, empty where there is none.
std::string model_type_of(const Json& config);
/// Settings that belong to the model but hold no weights: tokenizer, processor, generation. Sorted.
std::vector<std::filesystem::path> side_files_of(const std::filesystem::path& directory);
/// The tensor under another name, streaming from its file, which must outlive it.
TensorSource stream_of(const std::string& name, const HfTensor& tensor);

}  // namespace mm::ckpt
