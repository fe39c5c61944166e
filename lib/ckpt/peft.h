#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/ckpt/hf_index.h"
#include "lib/ckpt/low_rank.h"

namespace mm::ckpt {

// Adapters in the layout of Hugging Face's PEFT: adapter_config.json and adapter_model.safetensors
// with names "base_model.model.<module>.lora_A.weight". <module> is the path inside transformers'
// model ("model.language_model.layers.0.self_attn.q_proj"), older versions' included when read.

/// An adapter directory.
struct PeftAdapter {
  int64_t rank = 0;
  double alpha = 0;
  double dropout = 0;
  /// By published name: low-rank pairs "<module>.lora_A.weight", "<module>.lora_B.weight",
  /// and tensors that are saved whole (modules_to_save). Point into `files`.
  std::map<std::string, HfTensor> tensors;
  std::shared_ptr<const HfWeights> files;

  LowRank low_rank() const { return {rank, alpha, dropout}; }
};

/// Throws IoError, or DataError naming the file and key for what would change the sum without being
/// seen: another kind of adapter, DoRA, rank-stabilised scaling, ranks or alphas by pattern,
/// biases.
/// `model_type` is config.json's, of the model that the adapter belongs to.
PeftAdapter open_peft(const std::filesystem::path& directory,
                      std::string_view model_type = "llava");

/// What adapter_config.json says besides rank and alpha.
struct PeftFacts {
  std::string base_model;                    ///< base_model_name_or_path
  std::vector<std::string> target_modules;   ///< ends of module names
  std::vector<std::string> modules_to_save;  ///< trained and stored whole
};
Json peft_config(const LowRank& low_rank, const PeftFacts& facts);

/// "base_model.model." and the name inside transformers' model of a published name.
std::string peft_name(std::string_view published);

/// The shortest list that names the modules of the pairs among `tensors` and no other matrix:
/// last components ("q_proj") where no other weight has it, else whole module names.
std::vector<std::string> peft_targets(const std::vector<TensorSource>& tensors);

}  // namespace mm::ckpt
