#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lib/base/json.h"
#include "lib/data/dataset.h"
#include "lib/data/dataset_manifest.h"
#include "lib/run/caption_shape.h"
#include "lib/run/caption_tokenizers.h"

namespace mm::run {

/// What was stored of a data set's pictures and captions, and by what: equal settings, equal bytes.
/// docs/formats.md, "Encoded set".
struct EncodedSettings {
  std::string dataset;        ///< fingerprint of the data set
  std::string preprocessing;  ///< preprocessing_hash
  uint64_t rows = 0;
  bool mean_only = false;      ///< else mean and standard deviation
  std::string dtype = "fp32";  ///< of what is stored: fp32, bf16, fp16
  std::string vae;  ///< hash of the directory's config.json and weights; empty: no latents
  double scale = 1, shift = 0;  ///< of the VAE; what is stored is not scaled (field case C52)
  int32_t channels = 0, factor = 1;
  std::string text;  ///< text_models_hash of the text encoders; empty: no captions
  std::vector<std::string> text_models = {};  ///< model_hash of each
  int32_t text_padding = 0;                   ///< CaptionEncoders
  int32_t text_width = 0, pooled_width = 0;
  int32_t text_length = 0;  ///< rows of every caption; 0: as many as it has tokens
  /// Of each text encoder; empty in sets of before these were recorded.
  std::vector<CaptionShare> text_shares = {};
  std::vector<CaptionWriting> text_writing = {};
};
Json to_json(const EncodedSettings& settings);
/// Throws DataError naming key and `origin`.
EncodedSettings encoded_settings_from(const Json& json, const std::string& origin);

/// The settings as `encode` writes them, and their XXH3-128, which every unit's metadata has.
std::string settings_text(const EncodedSettings& settings);
std::string settings_hash(const EncodedSettings& settings);

/// OUT/manifest.json of an encoded set.
struct EncodedManifest {
  EncodedSettings settings;
  std::vector<data::FileEntry> units;  ///< rows [i * kUnitRows, (i + 1) * kUnitRows)
  uint64_t absent = 0;                 ///< rows that could not be read when they were to be encoded
};
inline constexpr uint64_t kUnitRows = 256;
std::string unit_name(uint64_t unit);
uint64_t unit_count(uint64_t rows);

Json to_json(const EncodedManifest& manifest);
/// Throws DataError, IoError.
EncodedManifest read_encoded_manifest(const std::filesystem::path& directory);

/// XXH3-128 over names and contents of a model directory's config.json and safetensors files.
std::string model_hash(const std::filesystem::path& directory);
/// Of text encoders that work together: of one without padding its model_hash.
std::string text_models_hash(const std::vector<std::string>& hashes, int64_t padding);
/// Of a data set's pictures, texts and tokenizer, and of how text encoders' captions were written
/// where that is known.
std::string preprocessing_hash(const data::DatasetManifest& manifest,
                               const std::vector<CaptionWriting>& writing);
/// The settings as sets of before captions' shares and writing were recorded have them.
EncodedSettings without_writing(EncodedSettings settings, const data::DatasetManifest& manifest);

}  // namespace mm::run
