#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

// Compiled once, in json.cpp, and not in every file that touches JSON: a tenth to a quarter of
// their time.
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
extern template class nlohmann::detail::serializer<nlohmann::ordered_json>;
extern template class std::vector<nlohmann::ordered_json>;

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
