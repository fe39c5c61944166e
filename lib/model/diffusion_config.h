#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lib/base/json.h"

namespace mm::model {

enum class DiffusionFamily {
  kDit,     ///< class labels, adaLN-zero in every block (Peebles and Xie 2023)
  kPixart,  ///< captions by cross attention, one adaLN for all blocks (Chen et al. 2023)
  kSd3,     ///< MMDiT: picture and text streams, joint attention (Esser et al. 2024)
};
/// "dit", "pixart", "sd3".
const char* diffusion_family_name(DiffusionFamily family);

/// A small text encoder that is trained with the model: pre-norm layers, attention in both
/// directions inside a caption, learned positions. `vocab` 0: there is none.
struct CaptionEncoderConfig {
  int64_t vocab = 0;
  int64_t hidden = 256;
  int64_t layers = 4;
  int64_t heads = 4;
  bool operator==(const CaptionEncoderConfig&) const = default;
};

/// A diffusion transformer. Defaults are those of diffusers' classes where they agree.
struct DiffusionConfig {
  DiffusionFamily family = DiffusionFamily::kDit;
  int64_t heads = 16;
  int64_t head_size = 72;
  int64_t layers = 28;
  int64_t in_channels = 4;
  bool learned_sigma = true;  ///< twice as many output channels: prediction, then variance
  int64_t sample_size = 32;   ///< side of the latents that positions are scaled to
  int64_t patch = 2;
  double position_scale = 1;  ///< interpolation_scale: coordinates are divided by it
  double attention_norm_eps = 1e-6, mlp_norm_eps = 1e-6;
  /// Frequencies of the time embedding fall by exp(-ln(10000) i / this): 128 in the papers' code,
  /// 127 in diffusers' DiT.
  int64_t time_divisor = 128;

  int64_t classes = 1000;      ///< kDit; the table has one row more, for no label
  bool own_embedders = false;  ///< kDit: each block has its own time and label embedder

  int64_t caption_width = 4096;  ///< of stored embeddings; with a text encoder its hidden size
  int64_t caption_tokens = 120;  ///< a caption's longest; longer ones are cut
  /// Whether padding of captions is kept out of attention (field case C55). SD3 trains without:
  /// the padded length is then part of the result, and must be the same in all micro-batches.
  bool mask_captions = true;
  /// kPixart, stored captions: a learned [caption_tokens, caption_width] stands for no caption;
  /// without it zeros do. A text encoder always has its own learned row.
  bool null_caption = false;
  bool size_embedders = false;  ///< kPixart: resolution and aspect ratio beside the time
  CaptionEncoderConfig text;    ///< kPixart

  int64_t pooled_width = 2048;       ///< kSd3
  int64_t position_table = 192;      ///< kSd3: side of the stored table
  bool qk_norm = false;              ///< kSd3: RMSNorm on each head of q and k (SD3.5)
  std::vector<int64_t> dual_layers;  ///< kSd3: with a second attention over the picture (SD3.5)

  int64_t hidden() const { return heads * head_size; }
  int64_t out_channels() const { return in_channels * (learned_sigma ? 2 : 1); }
  int64_t caption_input() const { return text.vocab > 0 ? text.hidden : caption_width; }
  bool takes_captions() const { return family != DiffusionFamily::kDit; }
};

/// Reads diffusers' config.json of DiTTransformer2DModel, PixArtTransformer2DModel or
/// SD3Transformer2DModel, with the keys that we add ("time_embedding_divisor", "null_caption",
/// "caption_tokens", "caption_encoder", "mask_captions", "own_embedders"). Throws DataError naming
/// `origin` and the key.
DiffusionConfig diffusion_config_from_json(const Json& json, const std::string& origin);
DiffusionConfig read_diffusion_config(const std::filesystem::path& config_json);
/// Whether this is the config.json of one of the three classes.
bool is_diffusion_config(const Json& json);

/// diffusers' config.json; keys of ours only where they differ from what diffusers would do. Read
/// back it gives the same configuration.
Json to_json(const DiffusionConfig& config);

/// Throws DataError with `origin` when sizes do not fit together.
void check_config(const DiffusionConfig& config, const std::string& origin);

}  // namespace mm::model
