#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/json.h"

namespace mm::data {

/// A sample that repeats an earlier one, by rows of the source.
struct DuplicatePair {
  uint64_t row = 0, first = 0;
  std::string key;  ///< of `row`
  bool operator==(const DuplicatePair&) const = default;
};

/// What came more than once without being asked for. Nothing is dropped: a data set may mean it.
struct DuplicateReport {
  uint64_t ids = 0;       ///< samples whose key an earlier sample has
  uint64_t pictures = 0;  ///< pictures whose bytes equal those of an earlier picture of another row
  std::vector<DuplicatePair> id_examples, picture_examples;  ///< the first kDuplicateExamples
  bool operator==(const DuplicateReport&) const = default;
};
inline constexpr size_t kDuplicateExamples = 10;

/// Collects what samples are told apart by, in 16 bytes a sample and picture: XXH3 of the key, and
/// of each picture's bytes. Not thread-safe.
class DuplicateFinder {
 public:
  /// Samples in source order. Copies that were asked for (`repeat` > 0) do not count.
  void add(uint64_t row, std::string_view key, uint32_t repeat,
           std::span<const uint64_t> picture_hashes);
  /// `key_of(row)` names a row that was added. O(n log n).
  DuplicateReport report(const std::function<std::string(uint64_t row)>& key_of);

 private:
  using Hashed = std::pair<uint64_t, uint64_t>;  ///< hash, row
  std::vector<Hashed> keys_, pictures_;
};

Json to_json(const DuplicateReport& report);
/// "duplicates 3 ids, 1 pictures (the first: "a", row 7 repeats row 2)"; empty without any, or for
/// a null report. Throws DataError as duplicates_from_json.
std::string duplicates_line(const Json& report, std::string_view origin);
/// Throws DataError naming the key at fault.
DuplicateReport duplicates_from_json(const Json& json, std::string_view origin);

}  // namespace mm::data
