#include "lib/model/config_section.h"

#include "lib/base/error.h"

namespace mm::model {

int64_t Section::integer(const char* key, int64_t fallback, int64_t low, int64_t high) const {
  if (!has(key)) return fallback;
  const Json& value = json.at(key);
  if (!value.is_number_integer() || value < low || value > high) {
    throw DataError("{}.{}: {} is not an integer from {} to {}", where, key, value.dump(), low,
                    high);
  }
  return value.get<int64_t>();
}

double Section::positive(const char* key, double fallback) const {
  if (!has(key)) return fallback;
  const Json& value = json.at(key);
  if (!value.is_number() || value.get<double>() <= 0) {
    throw DataError("{}.{}: {} is not a positive number", where, key, value.dump());
  }
  return value.get<double>();
}

bool Section::boolean(const char* key, bool fallback) const {
  if (!has(key)) return fallback;
  if (!json.at(key).is_boolean()) {
    throw DataError("{}.{}: {} is neither true nor false", where, key, json.at(key).dump());
  }
  return json.at(key).get<bool>();
}

std::string Section::word(const char* key, const std::string& fallback) const {
  if (!has(key)) return fallback;
  if (!json.at(key).is_string())
    throw DataError("{}.{}: {} is not a string", where, key, json.at(key).dump());
  return json.at(key).get<std::string>();
}

void Section::require(const char* key, const std::string& fallback,
                      const std::string& expected) const {
  const std::string value = word(key, fallback);
  if (value != expected)
    throw DataError("{}.{} is \"{}\"; only \"{}\" is supported", where, key, value, expected);
}

Section Section::child(const char* key) const {
  static const Json kEmpty = Json::object();
  if (!has(key)) return {kEmpty, where + "." + key};
  if (!json.at(key).is_object()) throw DataError("{}.{} is not an object", where, key);
  return {json.at(key), where + "." + key};
}

std::vector<int64_t> Section::integers(const char* key, std::vector<int64_t> fallback,
                                       int64_t low) const {
  if (!has(key)) return fallback;
  constexpr size_t kMost = 4096;
  if (!json.at(key).is_array() || json.at(key).size() > kMost)
    throw DataError("{}.{}: expected a list of integers", where, key);
  std::vector<int64_t> values;
  for (const Json& value : json.at(key)) {
    if (!value.is_number_integer() || value < low || value > kMaxConfigSize) {
      throw DataError("{}.{}: {} is not an integer from {} to {}", where, key, value.dump(), low,
                      kMaxConfigSize);
    }
    values.push_back(value.get<int64_t>());
  }
  return values;
}

}  // namespace mm::model
