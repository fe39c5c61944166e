#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/json.h"

namespace mm::model {

/// Which published model the parts make.
enum class Family {
  kLlava,           ///< LLaVA 1.0, 1.5: one square picture, a fixed number of tokens
  kLlavaNext,       ///< LLaVA 1.6: the whole picture and tiles of a grid, a mark behind each line
  kLlavaOnevision,  ///< the same with many tiles, whose features are scaled down
  kQwen25Vl,        ///< Qwen2.5-VL: pictures of any size, 2 x 2 patches a token
};
/// The model_type of config.json.
const char* family_name(Family family);
/// The family of that name; nothing if there is none.
std::optional<Family> family_from_name(std::string_view name);

enum class VisionKind {
  kClip,    ///< class token first, pre_layrnorm, patches without bias, quick GELU (Radford et al.
            ///< 2021)
  kSiglip,  ///< no class token, patches with bias, tanh GELU (Zhai et al. 2023)
  kQwen25,  ///< pictures of any size as two equal frames, rotary positions of row and column,
            ///< attention in windows, RMSNorm, gated SiLU (Bai et al. 2025)
};

/// A vision tower. Defaults are those of Hugging Face's CLIPVisionConfig, which published files
/// leave out.
struct VisionConfig {
  VisionKind kind = VisionKind::kClip;
  int64_t hidden = 768;
  int64_t intermediate = 3072;
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t channels = 3;
  int64_t image_size = 224;  ///< pixels a side
  int64_t patch_size = 32;   ///< pixels a side
  double norm_eps = 1e-5;
  bool pooling_head = false;  ///< SigLIP's attention pooling: in the files, not run

  // Of kQwen25, whose pictures have no common size: image_size is 0.
  int64_t merge = 1;                 ///< patches along a side that make one token
  int64_t window = 0;                ///< pixels along a side that attention sees
  std::vector<int64_t> full_layers;  ///< layers whose attention sees the whole picture
  int64_t output = 0;                ///< width that the merger writes: the decoder's

  /// floor(image_size / patch_size)^2, without the class token (field case C13).
  int64_t grid_patches() const { return (image_size / patch_size) * (image_size / patch_size); }
  /// Rows that a picture has inside the tower.
  int64_t rows() const { return grid_patches() + (kind == VisionKind::kClip ? 1 : 0); }
};

/// Changes of the rotary frequencies that stretch a context.
struct RopeScaling {
  enum class Kind {
    kNone,
    kLinear,  ///< all frequencies divided by `factor`
    kLlama3,  ///< low frequencies divided, high ones kept, blended between (Llama 3.1's rope_type)
  };
  Kind kind = Kind::kNone;
  double factor = 1;
  double low_freq_factor = 1, high_freq_factor = 4;  ///< of kLlama3, as below
  double original_positions = 8192;  ///< context that the model was first trained on
  bool operator==(const RopeScaling&) const = default;
};

/// Who published the decoder's layout. All are Llama's blocks: RMSNorm, rotary positions, grouped
/// queries, SwiGLU.
enum class TextKind {
  kLlama,
  kMistral,  ///< may have a sliding window
  kQwen2,    ///< biases on q, k, v
  kQwen3,    ///< RMSNorm on each head of q and k
};
/// That of a model_type ("llama", "mistral", "qwen2", "qwen3"); nothing for other words.
std::optional<TextKind> text_kind_from_name(std::string_view model_type);

/// A Llama-type decoder. Defaults are those of Hugging Face's LlamaConfig.
struct TextConfig {
  TextKind kind = TextKind::kLlama;
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
  RopeScaling rope_scaling;
  /// Pairs of a head that turn with the position in time, height and width, one after the other
  /// (M-RoPE); empty: one position.
  std::vector<int64_t> rope_sections;
  int64_t sliding_window = 0;  ///< a token sees this many, itself among them; 0: all before it
  bool qkv_bias = false;       ///< biases on q, k and v
  bool qk_norm = false;        ///< RMSNorm over each head of q and k before the rotation
  bool tied_head = false;      ///< the head reads the embedding table and is not stored
  int64_t bos_token = 1;       ///< -1: none; also below
  int64_t eos_token = 2;
  std::vector<int64_t> more_eos_tokens;  ///< the rest of a list of eos_token_id
  int64_t pad_token = -1;

  /// Sets the kind, and the biases and norms that go with it.
  void become(TextKind which) {
    kind = which;
    qkv_bias = which == TextKind::kQwen2;
    qk_norm = which == TextKind::kQwen3;
  }
};

/// What makes decoder embeddings of a tower's features.
enum class ProjectorKind {
  kMlp2xGelu,  ///< linear, exact (erf) GELU, linear
  kLinear,     ///< one linear layer, as LLaVA was first published (Liu et al. 2023)
};

/// A grid that tiles can make, in pixels.
struct GridPoint {
  int64_t height = 0, width = 0;
  bool operator==(const GridPoint&) const = default;
};

/// A vision-language model as Hugging Face's config.json states it: tower, projector, decoder.
struct LlavaConfig {
  Family family = Family::kLlava;
  VisionConfig vision;
  TextConfig text;
  /// The inner level of config.json ties the decoder's head and the outer one, which counts, does
  /// not: it is tied where no file holds one (read_directory_config).
  bool may_tie_head = false;
  int64_t image_token_index = 32000;  ///< the token that stands for one patch
  int64_t vision_feature_layer =
      -2;  ///< index into [embeddings, layer 1, ..., layer n]; negative from the end
  /// vision_feature_select_strategy "full"; "default" drops the tower's first row, CLIP's class
  /// token.
  bool keep_first_row = false;
  ProjectorKind projector = ProjectorKind::kMlp2xGelu;  ///< not of kQwen25Vl, which has a merger
  bool projector_bias = true;
  std::vector<GridPoint> grid_points;  ///< of kLlavaNext and kLlavaOnevision
  /// kLlavaOnevision: features of more tiles than these are scaled down ("anyres_max_9").
  int64_t max_grid_tiles = 0;
  int64_t video_token = -1;  ///< stands for frames, which are not read; -1: none
  /// Around each picture of kQwen25Vl; -1: none.
  int64_t vision_start_token = -1, vision_end_token = -1;

  /// Tower layers that run: -2 leaves out the last one.
  int64_t vision_layers_run() const;
  /// Whether pictures bring a PictureShape: tiles, or sizes of their own.
  bool varied_pictures() const { return family != Family::kLlava; }
  bool has_tiles() const {
    return family == Family::kLlavaNext || family == Family::kLlavaOnevision;
  }
  /// Rows that one picture or tile takes behind the projector: C13. 0 where sizes differ.
  int64_t patches_per_image() const {
    return family == Family::kQwen25Vl ? 0 : vision.rows() - (keep_first_row ? 0 : 1);
  }
};

/// Reads a config.json in either spelling: transformers 5 (`rope_parameters`; Qwen2.5-VL:
/// `text_config`) or the published one (`rope_theta`; the decoder's keys at the top). Our own key
/// "projector_kind" ("mlp2x_gelu", "linear") may be absent. Throws DataError, naming `origin` and
/// the key, for another model type, activation or rope scaling, for the flat configuration of
/// LLaVA's own code, for over 1,024 layers, and for sizes that do not fit together.
LlavaConfig llava_config_from_json(const Json& json, const std::string& origin);
LlavaConfig read_llava_config(const std::filesystem::path& config_json);

/// The config.json of an exported model, in the published spelling; read back it gives the same
/// configuration.
Json to_json(const LlavaConfig& config);

/// Throws DataError with `origin` when sizes do not fit together (heads do not divide, patch larger
/// than the picture, ...).
void check_config(const LlavaConfig& config, const std::string& origin);

}  // namespace mm::model
