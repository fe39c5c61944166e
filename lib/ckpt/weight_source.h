#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/ckpt/low_rank.h"
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
  std::vector<std::shared_ptr<const void>> open_files;  ///< what the streams read from
  std::optional<LowRank> low_rank;  ///< of the pairs among the tensors, where there are some
  std::string base_model;  ///< the Hugging Face directory that a run started from, or empty
  std::vector<std::string> trained_parts;  ///< of a run: "vision", "projector", "language"
  uint64_t real_vocab = 0;  ///< rows of the vocabulary tables without filling; 0: there is none
};

/// What becomes of a run's moving average of the weights, where it has one.
enum class Averages { kTake, kLeave };

/// Opens a Hugging Face or diffusers directory, one of our checkpoints (a run: its newest whole
/// one), or an original DiT, PixArt or SD3 checkpoint in one file (original_names.h), whose
/// configuration comes from the file `config`, or from its shapes where that is empty. Names become
/// the published ones, rotary tables are dropped; with tied embeddings a stored head must equal the
/// table, and is dropped (field case C47), as are T5's second table and DiT's repeated embedders.
/// Optimizer state is left out; a moving average takes the place of its weights, or is left. Throws
/// IoError; UsageError for a `config` where there is one already; DataError naming the path for
/// another lone safetensors file (no config.json says what it is), two tensors for one name, a copy
/// that differs, or a checkpoint without the model's configuration.
WeightSource open_weights(const Target& target, const std::filesystem::path& config = {},
                          Averages averages = Averages::kTake);

/// Adds the adapter in a PEFT directory to a model: its low-rank pairs as tensors beside their
/// weights, its whole tensors in place of the model's. Throws as open_peft, and DataError for a
/// tensor that the model lacks, another shape, or a model that has pairs already.
void add_adapter(WeightSource& source, const std::filesystem::path& directory);

/// Cuts the vocabulary tables back to WeightSource::real_vocab rows, config.json's sizes too (field
/// case C49). Nothing to do when that is 0.
void drop_filler_rows(WeightSource& source);

}  // namespace mm::ckpt
