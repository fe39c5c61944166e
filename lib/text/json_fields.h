#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "lib/text/pattern.h"

namespace mm::text {

/// Parses hostile text, no deeper than 64 levels. Throws DataError with `origin`.
nlohmann::json parse_limited(std::string_view text, std::string_view origin);
/// The "type" of a part of a tokenizer.json; "none" for what is no object, "?" without a type.
std::string type_of(const nlohmann::json& part);
/// The text under `key`, or `fallback` if it is missing or null. Throws DataError with `origin` if
/// it is no text; the same holds for the others.
std::string text_field(const nlohmann::json& part, const char* key, std::string_view fallback,
                       std::string_view origin);
bool flag_field(const nlohmann::json& part, const char* key, bool fallback,
                std::string_view origin);
/// The list under `key`. Throws DataError if there is none.
const nlohmann::json& list_field(const nlohmann::json& part, const char* key,
                                 std::string_view origin);
/// {"Regex": "..."} or {"String": "..."} under "pattern".
Pattern pattern_field(const nlohmann::json& part, std::string_view origin);
/// Throws DataError: "normalizer Foo is not supported".
[[noreturn]] void refuse_type(std::string_view what, const nlohmann::json& part,
                              std::string_view origin);

}  // namespace mm::text
