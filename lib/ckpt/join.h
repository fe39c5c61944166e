#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "lib/ckpt/convert.h"
#include "lib/ckpt/dtype.h"

namespace mm::ckpt {

struct JoinOptions {
  int64_t feature_layer = -2;  ///< index into [embeddings, layer 1, ...]; negative from the end
  /// Id that stands for one patch: a row that the tokenizer leaves unused, or the one behind the
  /// last; nothing: the latter.
  std::optional<uint64_t> image_token;
  std::string family = "llava";  ///< or "llava_next": pictures of tiles, in LLaVA 1.6's grids
  std::string projector = "mlp2x_gelu";  ///< or "linear": what mmtrain will draw
  std::optional<DType> dtype;  ///< of all floating-point tensors; nothing: each keeps its own
  uint64_t max_shard_bytes = 5'000'000'000;  ///< of tensors in one file
};

struct Join : Conversion {
  uint64_t image_token = 0;  ///< stands for one patch
  size_t left_out = 0;       ///< tensors of the vision directory that no LLaVA has
};

/// Makes one LLaVA directory, the start of its first stage, of two Hugging Face directories:
/// `vision` with CLIP or SigLIP (both towers or the vision one alone), `language` with a Llama,
/// Mistral, Qwen2 or Qwen3 model. Tensors get the published LLaVA names and keep their bytes, but
/// for vocabulary tables, which get one row more for an image token behind them (with_mean_row).
/// Text tower and projections to a common space are left out. There is no projector, nor the
/// newline of tiles: mmtrain draws them. Beside the weights: config.json in the published spelling,
/// the tokenizer's and generation's files of `language`, preprocessor_config.json of `vision`.
/// SigLIP has no class token, so its select strategy is "full", CLIP's "default".
///
/// `out` appears by one rename, whole or not at all; tensors stream. Throws UsageError when `out`
/// exists, the tower lacks the feature layer or the tables a row for the image token, IoError, and
/// DataError naming directory, key or tensor: no safetensors, another model type, a tensor without
/// a place, a missing table.
Join join(const std::filesystem::path& vision, const std::filesystem::path& language,
          const std::filesystem::path& out, const JoinOptions& options);

}  // namespace mm::ckpt
