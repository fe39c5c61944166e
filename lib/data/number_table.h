#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lib/data/csv_reader.h"

namespace mm::data {

/// Columns of whole numbers from a CSV file (.csv or .csv.gz, told apart by content) whose header
/// line names them; other columns are passed over, blank lines and a byte order mark too; fields
/// are quoted as RFC 4180 says. Streams. Not thread-safe.
class NumberTable {
 public:
  /// `columns`: the first `needed` of them must be there. Throws IoError, or DataError with file,
  /// line, and what was expected; so does `next`.
  NumberTable(const std::filesystem::path& path, std::vector<std::string> columns, size_t needed);

  bool has(size_t column) const { return places_[column] >= 0; }
  /// Numbers of the next row, 0 to 2^31 - 1, in the order of the columns; 0 for one that is not
  /// there. Nothing at the end.
  std::optional<std::vector<int32_t>> next();

 private:
  std::optional<CsvRow> next_row();
  int32_t number(const CsvRow& row, size_t column) const;
  const std::string path_;
  const std::vector<std::string> columns_;
  CsvReader rows_;
  std::vector<int> places_;  ///< of each column in a row; -1: nowhere
};

}  // namespace mm::data
