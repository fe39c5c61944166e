#include "lib/ckpt/json_fields.h"

#include <utility>

#include "lib/base/error.h"

namespace mm::ckpt {

JsonFields::JsonFields(const Json& value, std::string where)
    : value_(value), where_(std::move(where)) {
  if (!value_.is_object()) throw DataError("{}: an object expected", where_);
}

void JsonFields::fail(std::string_view key, std::string_view what) const {
  throw DataError("{}: \"{}\": {}", where_, key, what);
}

bool JsonFields::has(std::string_view key) const { return value_.contains(key); }

const Json& JsonFields::any(std::string_view key) const {
  const auto found = value_.find(key);
  if (found == value_.end()) fail(key, "is missing");
  return *found;
}

uint64_t JsonFields::u64(std::string_view key) const {
  const Json& value = any(key);
  if (!value.is_number_unsigned()) fail(key, "non-negative integer expected");
  return value.get<uint64_t>();
}

std::string JsonFields::text(std::string_view key) const {
  const Json& value = any(key);
  if (!value.is_string()) fail(key, "text expected");
  return value.get<std::string>();
}

const Json& JsonFields::array(std::string_view key) const {
  const Json& value = any(key);
  if (!value.is_array()) fail(key, "a list expected");
  return value;
}

std::vector<uint64_t> JsonFields::u64s(std::string_view key) const {
  std::vector<uint64_t> numbers;
  for (const Json& item : array(key)) {
    if (!item.is_number_unsigned()) fail(key, "non-negative integers expected");
    numbers.push_back(item.get<uint64_t>());
  }
  return numbers;
}

}  // namespace mm::ckpt
