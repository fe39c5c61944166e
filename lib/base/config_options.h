#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace mm {

// How a key is read. `def`: the default; a key without is required by get_*, optional for find_*.
// Bounds are inclusive and hold for what the recipe says, not for `def`. `doc`: one sentence with
// the unit.

struct IntOption {
  std::optional<int64_t> def = std::nullopt;
  int64_t min = std::numeric_limits<int64_t>::min();
  int64_t max = std::numeric_limits<int64_t>::max();
  std::string doc = {};
};

/// Integers are accepted too; NaN and infinities never.
struct DoubleOption {
  std::optional<double> def = std::nullopt;
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  std::string doc = {};
};

struct BoolOption {
  std::optional<bool> def = std::nullopt;
  std::string doc = {};
};

struct StringOption {
  std::optional<std::string> def = std::nullopt;
  bool allow_empty = false;
  std::string doc = {};
};

struct EnumOption {
  std::vector<std::string> words = {};
  std::optional<std::string> def = std::nullopt;
  std::string doc = {};
};

/// `def` is taken as it is, not resolved.
struct PathOption {
  std::optional<std::string> def = std::nullopt;
  bool must_exist = false;
  std::string doc = {};
};

/// Bounds hold for each element, `min_count` and `max_count` for the list.
struct IntListOption {
  std::optional<std::vector<int64_t>> def = std::nullopt;
  int64_t min = std::numeric_limits<int64_t>::min();
  int64_t max = std::numeric_limits<int64_t>::max();
  size_t min_count = 0;
  size_t max_count = std::numeric_limits<size_t>::max();
  std::string doc = {};
};

struct DoubleListOption {
  std::optional<std::vector<double>> def = std::nullopt;
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  size_t min_count = 0;
  size_t max_count = std::numeric_limits<size_t>::max();
  std::string doc = {};
};

struct StringListOption {
  std::optional<std::vector<std::string>> def = std::nullopt;
  size_t min_count = 0;
  size_t max_count = std::numeric_limits<size_t>::max();
  std::string doc = {};
};

}  // namespace mm
