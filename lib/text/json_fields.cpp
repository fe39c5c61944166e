#include "lib/text/json_fields.h"

#include "lib/base/error.h"

namespace mm::text {

using nlohmann::json;

namespace {

const json* find(const json& part, const char* key) {
  if (!part.is_object()) return nullptr;
  const auto found = part.find(key);
  return found == part.end() || found->is_null() ? nullptr : &*found;
}

}  // namespace

json parse_limited(std::string_view text, std::string_view origin) {
  constexpr int kMaxDepth = 64;
  const auto guard = [&](int depth, json::parse_event_t, json&) {
    if (depth > kMaxDepth) throw DataError("{}: nested deeper than {}", origin, kMaxDepth);
    return true;
  };
  try {
    return json::parse(text, guard);
  } catch (const json::exception& e) {
    throw DataError("{}: not a tokenizer's JSON: {}", origin, e.what());
  }
}

std::string type_of(const json& part) {
  if (!part.is_object()) return "none";
  const json* type = find(part, "type");
  return type != nullptr && type->is_string() ? type->get<std::string>() : "?";
}

std::string text_field(const json& part, const char* key, std::string_view fallback,
                       std::string_view origin) {
  const json* value = find(part, key);
  if (value == nullptr) return std::string(fallback);
  if (!value->is_string())
    throw DataError("{}: {} of {} is not a text", origin, key, type_of(part));
  return value->get<std::string>();
}

bool flag_field(const json& part, const char* key, bool fallback, std::string_view origin) {
  const json* value = find(part, key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean())
    throw DataError("{}: {} of {} is not true or false", origin, key, type_of(part));
  return value->get<bool>();
}

const json& list_field(const json& part, const char* key, std::string_view origin) {
  const json* value = find(part, key);
  if (value == nullptr || !value->is_array())
    throw DataError("{}: {} of {} is not a list", origin, key, type_of(part));
  return *value;
}

Pattern pattern_field(const json& part, std::string_view origin) {
  const json* pattern = find(part, "pattern");
  const json none = json::object();
  const json& value = pattern != nullptr ? *pattern : none;
  if (const auto regex = text_field(value, "Regex", "", origin); !regex.empty())
    return Pattern::regex(regex, origin);
  if (const auto text = text_field(value, "String", "", origin); !text.empty())
    return Pattern::literal(text);
  throw DataError("{}: {} has no pattern (Regex or String)", origin, type_of(part));
}

void refuse_type(std::string_view what, const json& part, std::string_view origin) {
  throw DataError("{}: {} {} is not supported", origin, what, type_of(part));
}

}  // namespace mm::text
