#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>

#include "lib/data/record.h"

namespace mm::data {

/// Selects rows by their recorded key: those listed in one file, without those of another. Files
/// hold one key a line, UTF-8; blank lines mean nothing. Not thread-safe.
class KeyFilter {
 public:
  /// Empty paths: no such list. Throws IoError, DataError for a key listed twice in one file.
  KeyFilter(const std::filesystem::path& ids, const std::filesystem::path& exclude);
  /// Counts what it refuses. Skipped entries pass through only without an `ids` list.
  bool keep(const SourceItem& item);
  uint64_t left_out() const { return left_out_; }
  /// After the last row: DataError naming a key that no row had, since a typo there would change
  /// the set in silence.
  void check_all_seen() const;

 private:
  struct List {
    std::filesystem::path path;
    std::unordered_map<std::string, bool> seen;
  };
  static std::optional<List> read_list(const std::filesystem::path& path);
  static void check_list(const List& list);
  std::optional<List> ids_, exclude_;
  uint64_t left_out_ = 0;
};

}  // namespace mm::data
