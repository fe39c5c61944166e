#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>

namespace mm::text {

/// A JSON object of a tokenizer's directory; an empty one where there is no such file. Throws
/// DataError naming the file for what is no object, IoError.
nlohmann::json read_settings(const std::filesystem::path& path);

/// What a directory says of special tokens, as Hugging Face reads it.
struct SpecialTokens {
  nlohmann::json config;  ///< tokenizer_config.json
  nlohmann::json map;     ///< special_tokens_map.json

  /// The value of a role ("pad_token"), or null: special_tokens_map.json stands over
  /// tokenizer_config.json, unless the latter lists added_tokens_decoder, as those of Transformers
  /// 4.34 and later do; then it alone counts.
  nlohmann::json of(const char* role) const;
};
/// Throws as read_settings does.
SpecialTokens read_special_tokens(const std::filesystem::path& directory);

}  // namespace mm::text
