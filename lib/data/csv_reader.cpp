#include "lib/data/csv_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "lib/data/row_fields.h"

namespace mm::data {
namespace {

constexpr std::array<std::string_view, 4> kOtherColumns = {"id", "key", "conversations",
                                                           "messages"};

template <typename Names>
bool contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string_view trimmed(std::string_view name) {
  constexpr std::string_view kEdges = " \t\"";
  const size_t first = name.find_first_not_of(kEdges);
  if (first == std::string_view::npos) return {};
  return name.substr(first, name.find_last_not_of(kEdges) - first + 1);
}

}  // namespace

CsvReader::CsvReader(const std::filesystem::path& path, char delimiter, EmptyQuotes empty_quotes)
    : in_(path), delimiter_(delimiter), empty_quotes_(empty_quotes) {}

int CsvReader::get() {
  const int byte = in_.get();
  if (byte == '\n') ++line_;
  return byte;
}

void CsvReader::take(std::string& field, CsvRow& row) {
  const int byte = get();
  if (++row_bytes_ <= kMaxRowBytes) {
    field.push_back(static_cast<char>(byte));
  } else {
    row.problem = fmt::format("the row is longer than {} MiB; is a quote left open in it?",
                              kMaxRowBytes >> 20);
  }
}

void CsvReader::read_quoted(std::string& field, CsvRow& row) {
  get();
  while (row.problem.empty()) {
    if (in_.peek() == TextStream::kEnd) {
      row.problem = "a quote is open to the end of the file";
      return;
    }
    if (in_.peek() != '"') {
      take(field, row);
      continue;
    }
    get();
    if (in_.peek() != '"') return;
    take(field, row);
  }
}

bool CsvReader::read_field(CsvRow& row) {
  std::string& field = row.fields.emplace_back();
  if (in_.peek() == '"') read_quoted(field, row);
  for (int byte = in_.peek();; byte = in_.peek()) {
    if (byte == TextStream::kEnd || byte == '\n') {
      if (field.ends_with('\r')) field.pop_back();
      get();
      return false;
    }
    if (byte == delimiter_) {
      get();
      return true;
    }
    take(field, row);
  }
}

std::optional<CsvRow> CsvReader::next() {
  for (;;) {
    if (in_.peek() == TextStream::kEnd) return std::nullopt;
    CsvRow row;
    row.line = line_;
    row_bytes_ = 0;
    const bool quoted = empty_quotes_ == EmptyQuotes::kRow && in_.peek() == '"';
    while (read_field(row)) {
    }
    const bool blank =
        !quoted && row.fields.size() == 1 && row.fields[0].empty() && row.problem.empty();
    if (!blank) return row;
  }
}

std::string known_column(std::string_view name) {
  std::string lower(trimmed(name));
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (contains(image_columns(), lower) || contains(caption_columns(), lower) ||
      contains(kOtherColumns, lower)) {
    return lower;
  }
  return {};
}

bool is_table_header(std::string_view line, char delimiter) {
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find(delimiter, begin), line.size());
    const std::string name = known_column(line.substr(begin, end - begin));
    if (contains(caption_columns(), name) || name == "conversations" || name == "messages")
      return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace mm::data
