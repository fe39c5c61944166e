#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/data/text_stream.h"

namespace mm::data {

/// A row of a table, or what is wrong with it.
struct CsvRow {
  std::vector<std::string> fields;
  uint64_t line = 0;    ///< of its first character, from 1
  std::string problem;  ///< empty: the row is whole
};

/// RFC 4180, for any delimiter: fields in quotes may hold delimiters, line ends and doubled quotes;
/// lines end in \n or \r\n; a byte order mark is skipped; blank lines mean nothing. Beyond the RFC:
/// a quote inside an unquoted field, or text after a closing quote, is taken as it stands. Memory
/// is that of one row. Not thread-safe.
class CsvReader {
 public:
  /// Whether a line that holds "" alone is a row of one empty field, or means nothing.
  enum class EmptyQuotes { kSkipped, kRow };
  /// Throws IoError.
  CsvReader(const std::filesystem::path& path, char delimiter,
            EmptyQuotes empty_quotes = EmptyQuotes::kSkipped);
  /// Nothing at the end. A quote left open to the end of the file, or a row over kMaxRowBytes,
  /// gives a row with a problem; reading goes on after the line where it was noticed.
  std::optional<CsvRow> next();

 private:
  /// One field; true if another follows in the row.
  bool read_field(CsvRow& row);
  void read_quoted(std::string& field, CsvRow& row);
  void take(std::string& field, CsvRow& row);
  int get();

  TextStream in_;
  const char delimiter_;
  const EmptyQuotes empty_quotes_;
  uint64_t line_ = 1;
  size_t row_bytes_ = 0;
};

/// Canonical name of a column that sources use: image_columns(), caption_columns(), id, key,
/// conversations, messages, in any case; empty for others.
std::string known_column(std::string_view name);

/// Whether a first line is the header of a table that can be packed: it has a column with text.
bool is_table_header(std::string_view line, char delimiter);

}  // namespace mm::data
