#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "lib/base/json.h"

namespace mm::model {

/// CLIP's vision tower. Defaults are those of Hugging Face's CLIPVisionConfig, which published
/// files leave out.
struct VisionConfig {
  int64_t hidden = 768;
  int64_t intermediate = 3072;
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t channels = 3;
  int64_t image_size = 224;  ///< pixels a side
  int64_t patch_size = 32;   ///< pixels a side
  double norm_eps = 1e-5;

  /// floor(image_size / patch_size)^2, without the class token (field case C13).
  int64_t grid_patches() const { return (image_size / patch_size) * (image_size / patch_size); }
};

/// A Llama-type decoder. Defaults are those of Hugging Face's LlamaConfig.
struct TextConfig {
  int64_t vocab = 32000;
  int64_t hidden = 4096;
  int64_t intermediate = 11008;
  int64_t layers = 32;
  int64_t heads = 32;
  int64_t kv_heads = 32;
  int64_t head_size = 128;
  int64_t max_positions = 2048;
  double norm_eps = 1e-6;
  double rope_theta = 10000.0;
  bool qkv_bias = false;   ///< biases on q, k and v
  bool tied_head = false;  ///< the head reads the embedding table and is not stored
  int64_t bos_token = 1;   ///< -1: none; also below
  int64_t eos_token = 2;
  int64_t pad_token = -1;
};

/// LLaVA as Hugging Face's config.json states it: tower, two-layer GELU projector, decoder.
struct LlavaConfig {
  VisionConfig vision;
  TextConfig text;
  int64_t image_token_index = 32000;  ///< the token that stands for one patch
  int64_t vision_feature_layer =
      -2;  ///< index into [embeddings, layer 1, ..., layer n]; negative from the end
  bool keep_class_token = false;  ///< vision_feature_select_strategy "full"
  bool projector_bias = true;

  /// Tower layers that run: -2 leaves out the last one.
  int64_t vision_layers_run() const;
  /// Rows that one picture takes in the language model: C13.
  int64_t patches_per_image() const { return vision.grid_patches() + (keep_class_token ? 1 : 0); }
};

/// Reads a config.json in either spelling: transformers 5 (`rope_parameters`) or the published one
/// (`rope_theta`). Throws DataError, naming `origin` and the key, for another model type,
/// activation or rope scaling, and for sizes that do not fit together.
LlavaConfig llava_config_from_json(const Json& json, const std::string& origin);
LlavaConfig read_llava_config(const std::filesystem::path& config_json);

/// The config.json of an exported model, in the published spelling; read back it gives the same
/// configuration.
Json to_json(const LlavaConfig& config);

/// Throws DataError with `origin` when sizes do not fit together (heads do not divide, patch larger
/// than the picture, ...).
void check_config(const LlavaConfig& config, const std::string& origin);

}  // namespace mm::model
