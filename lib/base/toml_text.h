#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mm {

/// TOML text of one value; parsing it gives the same value back (doubles: the shortest text that
/// does, never an integer's).
std::string toml_text(int64_t value);
std::string toml_text(double value);
std::string toml_text(bool value);
std::string toml_text(std::string_view value);
inline std::string toml_text(const std::string& value) {
  return toml_text(std::string_view(value));
}

template <typename T>
std::string toml_text(const std::vector<T>& values) {
  std::string out = "[";
  for (size_t i = 0; i < values.size(); ++i) out += (i == 0 ? "" : ", ") + toml_text(values[i]);
  return out + "]";
}

/// Bare if it can be, else quoted.
std::string toml_key(std::string_view key);

}  // namespace mm
