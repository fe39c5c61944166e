#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lib/ckpt/dtype.h"
#include "lib/ckpt/target.h"

namespace mm::ckpt {

/// What to write.
struct ConvertOptions {
  enum class To {
    kHuggingFace,  ///< config.json, model.safetensors or its shards with an index, side files
    kOwn,          ///< a run directory with ckpt/step-00000000, for `init.from`
    kPeft,  ///< adapter_config.json, adapter_model.safetensors: pairs and whole trained parts
  };
  To to = To::kHuggingFace;
  std::filesystem::path config;   ///< config.json of an original checkpoint; empty: from its shapes
  std::filesystem::path adapter;  ///< PEFT directory to add to the model; empty: none
  bool merge_adapters = false;    ///< kOwn: add pairs to their weights; kHuggingFace always does
  bool raw_weights = false;       ///< of a run, although it has their moving average
  bool keep_filler_rows = false;  ///< else vocabulary rows that only fill up are cut off
  std::optional<DType> dtype;     ///< of all floating-point tensors; nothing: each keeps its own
  uint64_t max_shard_bytes = 5'000'000'000;  ///< of tensors in one file of a Hugging Face directory
};

struct Conversion {
  size_t tensors = 0, files = 0;
  uint64_t bytes = 0;  ///< of tensors, as written
  std::vector<std::string> notes;
};

/// Writes the weights of `in`, with low-rank adapters merged, apart or kept as the options say,
/// to the new directory `out`: beside it first, then by one rename, so
/// that `out` is whole or absent. There and back gives equal bytes of every tensor whose type is
/// kept. Throws UsageError when `out` exists or adapters are asked for where there are none, else
/// as open_weights, cast_floats and the writers do.
Conversion convert(const Target& in, const std::filesystem::path& out,
                   const ConvertOptions& options);

}  // namespace mm::ckpt
