#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/ckpt/safetensors_writer.h"
#include "lib/ckpt/target.h"

namespace mm::ckpt {

/// The weights of a model wherever they lie, ready to be written elsewhere: tensors stream from
/// their files when asked, so that a model larger than memory passes through (a tensor that several
/// pieces make up is held whole while it is written).
struct WeightSource {
  std::vector<TensorSource> tensors;              ///< sorted by name
  Json config;                                    ///< Hugging Face's config.json
  std::vector<std::filesystem::path> side_files;  ///< tokenizer, processor, generation settings
  std::vector<std::string> notes;                 ///< what was renamed, dropped or odd, for people
  std::shared_ptr<const void> open_files;         ///< what the streams read from
};

/// Opens a Hugging Face directory or one of our checkpoints (a run: its newest whole one). Names of
/// LLaVA models become the published ones (published_llava_name), rotary tables are dropped; with
/// tied embeddings a stored head must equal the table, and is dropped (field case C47). Optimizer
/// state and averages are left out. Throws IoError; DataError naming the path for a lone
/// safetensors file (no config.json says what it is), two tensors for one name, a head that
/// differs, or a checkpoint without the model's configuration.
WeightSource open_weights(const Target& target);

}  // namespace mm::ckpt
