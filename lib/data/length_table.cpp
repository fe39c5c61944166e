#include "lib/data/length_table.h"

#include <array>
#include <charconv>
#include <functional>
#include <numeric>
#include <optional>
#include <string_view>

#include "lib/base/error.h"
#include "lib/data/csv_reader.h"

namespace mm::data {
namespace {

constexpr size_t kLongestRow = 1 << 20;

/// The next row of a table that should be small; none at the end.
std::optional<CsvRow> next_row(CsvReader& table, const std::string& path) {
  auto row = table.next();
  if (!row) return row;
  const size_t bytes = std::transform_reduce(row->fields.begin(), row->fields.end(), size_t{0},
                                             std::plus<>(), std::mem_fn(&std::string::size));
  if (row->problem.empty() && bytes > kLongestRow)
    row->problem = fmt::format("is longer than {} bytes", kLongestRow);
  if (!row->problem.empty()) throw DataError("{}: line {}: {}", path, row->line, row->problem);
  return row;
}

/// Where the columns that count stand; -1: nowhere.
struct Places {
  int tokens = -1, images = -1, targets = -1;
};

Places find_columns(const std::vector<std::string>& header, const std::string& path) {
  Places places;
  for (size_t i = 0; i < header.size(); ++i) {
    const std::array<std::pair<std::string_view, int*>, 3> wanted{
        {{"tokens", &places.tokens}, {"images", &places.images}, {"targets", &places.targets}}};
    for (const auto& [name, place] : wanted) {
      if (header[i] != name) continue;
      if (*place >= 0) throw DataError("{}: line 1: column {} stands there twice", path, name);
      *place = static_cast<int>(i);
    }
  }
  if (places.tokens < 0)
    throw DataError("{}: line 1: no column is named \"tokens\"; expected a CSV header", path);
  return places;
}

int32_t number_in(const CsvRow& row, int place, std::string_view column, const std::string& path) {
  if (place < 0) return 0;
  if (static_cast<size_t>(place) >= row.fields.size()) {
    throw DataError("{}: line {}: {} fields, column {} is number {}", path, row.line,
                    row.fields.size(), column, place + 1);
  }
  const std::string& text = row.fields[static_cast<size_t>(place)];
  int32_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    throw DataError("{}: line {}: {} is \"{}\"; expected a whole number from 0 to 2147483647", path,
                    row.line, column, text.substr(0, 40));
  }
  return value;
}

}  // namespace

LengthTable read_lengths(const std::filesystem::path& file) {
  const std::string path = file.string();
  CsvReader rows(file, ',', CsvReader::EmptyQuotes::kRow);
  const auto header = next_row(rows, path);
  if (!header) throw DataError("{}: empty; expected a CSV header", path);
  const Places places = find_columns(header->fields, path);
  LengthTable table{.has_images = places.images >= 0};
  while (const auto row = next_row(rows, path)) {
    table.sizes.push_back({.tokens = number_in(*row, places.tokens, "tokens", path),
                           .images = number_in(*row, places.images, "images", path),
                           .targets = number_in(*row, places.targets, "targets", path)});
  }
  return table;
}

uint64_t cut_lengths(std::vector<SampleSize>& sizes, int32_t tokens) {
  uint64_t cut = 0;
  for (SampleSize& size : sizes) {
    if (size.tokens <= tokens) continue;
    size.tokens = tokens;
    ++cut;
  }
  return cut;
}

}  // namespace mm::data
