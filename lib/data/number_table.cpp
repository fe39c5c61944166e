#include "lib/data/number_table.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <numeric>
#include <utility>

#include "lib/base/error.h"

namespace mm::data {
namespace {

constexpr size_t kLongestRow = 1 << 20;

}  // namespace

NumberTable::NumberTable(const std::filesystem::path& path, std::vector<std::string> columns,
                         size_t needed)
    : path_(path.string()),
      columns_(std::move(columns)),
      rows_(path, ',', CsvReader::EmptyQuotes::kRow),
      places_(columns_.size(), -1) {
  const auto header = next_row();
  if (!header) throw DataError("{}: empty; expected a CSV header", path_);
  for (size_t i = 0; i < header->fields.size(); ++i) {
    const auto found = std::ranges::find(columns_, header->fields[i]);
    if (found == columns_.end()) continue;
    int& place = places_[static_cast<size_t>(found - columns_.begin())];
    if (place >= 0) throw DataError("{}: line 1: column {} stands there twice", path_, *found);
    place = static_cast<int>(i);
  }
  for (size_t c = 0; c < needed; ++c) {
    if (!has(c))
      throw DataError("{}: line 1: no column is named \"{}\"; expected a CSV header", path_,
                      columns_[c]);
  }
}

/// The next row of a table that should be small; none at the end.
std::optional<CsvRow> NumberTable::next_row() {
  auto row = rows_.next();
  if (!row) return row;
  const size_t bytes = std::transform_reduce(row->fields.begin(), row->fields.end(), size_t{0},
                                             std::plus<>(), std::mem_fn(&std::string::size));
  if (row->problem.empty() && bytes > kLongestRow)
    row->problem = fmt::format("is longer than {} bytes", kLongestRow);
  if (!row->problem.empty()) throw DataError("{}: line {}: {}", path_, row->line, row->problem);
  return row;
}

int32_t NumberTable::number(const CsvRow& row, size_t column) const {
  if (!has(column)) return 0;
  const auto place = static_cast<size_t>(places_[column]);
  if (place >= row.fields.size()) {
    throw DataError("{}: line {}: {} fields, column {} is number {}", path_, row.line,
                    row.fields.size(), columns_[column], place + 1);
  }
  const std::string& text = row.fields[place];
  int32_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    throw DataError("{}: line {}: {} is \"{}\"; expected a whole number from 0 to 2147483647",
                    path_, row.line, columns_[column], text.substr(0, 40));
  }
  return value;
}

std::optional<std::vector<int32_t>> NumberTable::next() {
  const auto row = next_row();
  if (!row) return std::nullopt;
  std::vector<int32_t> numbers;
  for (size_t c = 0; c < columns_.size(); ++c) numbers.push_back(number(*row, c));
  return numbers;
}

}  // namespace mm::data
