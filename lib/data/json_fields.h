#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "lib/base/error.h"
#include "lib/base/json.h"

namespace mm::data {

/// Typed access to an object that may hold anything: each error says file, key, what is there and
/// what was expected.
class JsonFields {
 public:
  JsonFields(const Json& object, std::string_view origin) : object_(object), origin_(origin) {
    if (!object.is_object())
      throw DataError("{}: {} where an object was expected", origin, object.type_name());
  }
  const Json& at(std::string_view key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) throw DataError("{}: key \"{}\" is missing", origin_, key);
    return *found;
  }
  JsonFields object(std::string_view key) const { return {at(key), origin_}; }
  const Json& array(std::string_view key) const {
    return typed(key, at(key).is_array(), "an array");
  }
  std::string text(std::string_view key) const {
    return typed(key, at(key).is_string(), "a string").get<std::string>();
  }
  /// An integer that fits T and is at least `least`.
  template <typename T>
  T integer(std::string_view key, T least = 0) const {
    const Json& value = at(key);
    const bool whole = value.is_number_unsigned() || (value.is_number_integer() && least < 0);
    if (!whole || !fits<T>(value, least)) {
      throw DataError("{}: key \"{}\" is {}, expected a whole number from {} to {}", origin_, key,
                      value.dump(), least, std::numeric_limits<T>::max());
    }
    return value.get<T>();
  }
  const Json& json() const { return object_; }
  std::string_view origin() const { return origin_; }

 private:
  template <typename T>
  static bool fits(const Json& value, T least) {
    if (value.is_number_unsigned()) {
      const auto number = value.get<uint64_t>();
      return number <= static_cast<uint64_t>(std::numeric_limits<T>::max()) &&
             (least <= 0 || number >= static_cast<uint64_t>(least));
    }
    return value.get<int64_t>() >= static_cast<int64_t>(least);
  }
  const Json& typed(std::string_view key, bool right, std::string_view expected) const {
    if (!right)
      throw DataError("{}: key \"{}\" is {}, expected {}", origin_, key, at(key).type_name(),
                      expected);
    return at(key);
  }
  const Json& object_;
  std::string_view origin_;
};

}  // namespace mm::data
