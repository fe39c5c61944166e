#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/json.h"

namespace mm::model {

// Above any published model, below what makes products of two sizes overflow.
inline constexpr int64_t kMaxConfigSize = int64_t{1} << 24;
// Of layers, each of which becomes a block before any weight is read; recipes have the same bound.
inline constexpr int64_t kMaxConfigLayers = 1024;

/// One object of a config.json with its place for messages. A key that is absent or null has its
/// fallback. Every method throws DataError, naming place and key, for a value of another type or
/// out of range.
struct Section {
  const Json& json;
  std::string where;

  bool has(const char* key) const { return json.contains(key) && !json.at(key).is_null(); }
  int64_t integer(const char* key, int64_t fallback, int64_t low = 1,
                  int64_t high = kMaxConfigSize) const;
  /// A number of layers.
  int64_t layers(const char* key, int64_t fallback) const {
    return integer(key, fallback, 1, kMaxConfigLayers);
  }
  double positive(const char* key, double fallback) const;
  bool boolean(const char* key, bool fallback) const;
  std::string word(const char* key, const std::string& fallback) const;
  /// At most 4,096 integers, each at least `low`.
  std::vector<int64_t> integers(const char* key, std::vector<int64_t> fallback, int64_t low) const;
  /// The word must be the expected one.
  void require(const char* key, const std::string& fallback, const std::string& expected) const;
  /// An absent object is empty.
  Section child(const char* key) const;
};

}  // namespace mm::model
