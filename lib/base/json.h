#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

namespace mm {

using Json = nlohmann::ordered_json;

/// Limits for text that did not come from us: checked while parsing, before anything is built from
/// it.
struct JsonLimits {
  int max_depth = 64;
  bool reject_duplicate_keys = true;
};

/// Parses hostile text. `origin` names the file in messages. Throws DataError with origin, byte
/// offset and reason (invalid UTF-8, trailing text, too deep, duplicate key).
Json parse_json(std::string_view text, std::string_view origin, const JsonLimits& limits = {});
Json read_json_file(const std::filesystem::path& path, const JsonLimits& limits = {});

}  // namespace mm
