#pragma once
#include <ATen/core/Tensor.h>

#include <filesystem>
#include <vector>

#include "lib/ckpt/hf_index.h"
#include "lib/model/block.h"
#include "lib/model/llava_config.h"

namespace mm::model {

/// What a start may add to the weights of a directory.
struct LoadOptions {
  bool new_rows = false;  ///< vocabulary tables with fewer rows grow (lib/model/vocab_rows.h)
  /// A directory without any projector tensor (mmckpt join makes such) is accepted, and one whose
  /// projector lacks only image_newline (a first stage on pictures of one tile): undefined values,
  /// which the caller draws. Half a projector is still an error.
  bool may_lack_projector = false;
};

/// One value per parameter of `model` (row = ParamId), in the dtype of the files (fp32, bf16, fp16
/// or float64). Names may be in any spelling of ckpt::published_llava_name(). But for `options`
/// nothing is left random: throws DataError, naming the directory and tensor, for a parameter
/// without a tensor, a tensor without a parameter, two tensors for one parameter, another shape or
/// another kind of number. Tied head (field case C47): with `config.text.tied_head` a stored
/// lm_head must equal the embedding table, and is dropped.
std::vector<at::Tensor> load_llava_weights(const Model& model, const LlavaConfig& config,
                                           const ckpt::HfWeights& weights,
                                           const std::string& origin,
                                           const LoadOptions& options = {});

/// config.json of a directory. Where its levels differ on tie_word_embeddings, the weights decide:
/// a head that no file holds is tied. Throws as read_llava_config and ckpt::HfWeights do.
LlavaConfig read_directory_config(const std::filesystem::path& directory);

/// A model read from a Hugging Face directory: config.json and safetensors files.
struct LoadedLlava {
  LlavaConfig config;
  Model model;
  std::vector<at::Tensor> values;
};
LoadedLlava load_llava(const std::filesystem::path& directory);

/// The tensor of a file as LibTorch sees it. Throws DataError for a dtype that LibTorch lacks.
at::Tensor to_tensor(const ckpt::SafetensorsFile& file, const ckpt::TensorEntry& entry);

}  // namespace mm::model
