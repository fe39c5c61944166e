#include "lib/data/index.h"

#include <utility>

#include "lib/base/error.h"
#include "lib/data/byte_codec.h"

namespace mm::data {
namespace {

constexpr ColumnFormat kFormat{"MMINDEX\n", 1, "index"};

/// A column and the bytes it owns.
struct BuiltColumn {
  std::string_view name;
  uint32_t element_bytes;
  std::string data;
};

template <typename T, typename Get>
BuiltColumn column_of(std::string_view name, std::span<const IndexRow> rows, Get get) {
  ByteWriter out;
  for (const IndexRow& row : rows) out.put(static_cast<T>(get(row)));
  return {name, sizeof(T), out.take()};
}

std::vector<BuiltColumn> columns_of(std::span<const IndexRow> rows) {
  std::vector<BuiltColumn> all;
  all.push_back(
      column_of<uint64_t>("source_row", rows, [](const IndexRow& r) { return r.source_row; }));
  all.push_back(column_of<uint64_t>("offset", rows, [](const IndexRow& r) { return r.offset; }));
  all.push_back(column_of<uint32_t>("shard", rows, [](const IndexRow& r) { return r.shard; }));
  all.push_back(column_of<uint32_t>("bytes", rows, [](const IndexRow& r) { return r.bytes; }));
  all.push_back(
      column_of<int32_t>("tokens", rows, [](const IndexRow& r) { return r.size.tokens; }));
  all.push_back(
      column_of<int32_t>("images", rows, [](const IndexRow& r) { return r.size.images; }));
  all.push_back(
      column_of<int32_t>("targets", rows, [](const IndexRow& r) { return r.size.targets; }));
  all.push_back(column_of<int32_t>("width", rows, [](const IndexRow& r) { return r.width; }));
  all.push_back(column_of<int32_t>("height", rows, [](const IndexRow& r) { return r.height; }));
  all.push_back(column_of<uint32_t>("source", rows, [](const IndexRow& r) { return r.source; }));
  uint64_t end = 0;
  all.push_back(
      column_of<uint64_t>("key_end", rows, [&](const IndexRow& r) { return end += r.key.size(); }));
  BuiltColumn keys{"keys", 1, {}};
  for (const IndexRow& row : rows) keys.data += row.key;
  all.push_back(std::move(keys));
  return all;
}

}  // namespace

void write_index(const std::filesystem::path& path, std::span<const IndexRow> rows) {
  const auto built = columns_of(rows);
  std::vector<NamedColumn> columns;
  for (const BuiltColumn& c : built)
    columns.push_back({c.name, c.element_bytes, std::as_bytes(std::span(c.data))});
  write_columns(path, kFormat, rows.size(), columns);
}

DatasetIndex::DatasetIndex(const std::filesystem::path& path) : file_(path, kFormat) {
  rows_ = file_.rows();
  source_row_ = file_.get<uint64_t>("source_row", rows_);
  offset_ = file_.get<uint64_t>("offset", rows_);
  shard_ = file_.get<uint32_t>("shard", rows_);
  bytes_ = file_.get<uint32_t>("bytes", rows_);
  tokens_ = file_.get<int32_t>("tokens", rows_);
  images_ = file_.get<int32_t>("images", rows_);
  targets_ = file_.get<int32_t>("targets", rows_);
  width_ = file_.get<int32_t>("width", rows_);
  height_ = file_.get<int32_t>("height", rows_);
  if (file_.has("source")) source_ = file_.get<uint32_t>("source", rows_);
  key_end_ = file_.get<uint64_t>("key_end", rows_);
  const auto keys = file_.get<char>("keys", std::nullopt);
  keys_ = {keys.data(), keys.size()};
  check_keys(path);
}

void DatasetIndex::check_keys(const std::filesystem::path& path) const {
  uint64_t end = 0;
  for (uint64_t row = 0; row < rows_; ++row) {
    if (key_end_[row] < end || key_end_[row] > keys_.size()) {
      throw DataError("{}: row {}: key ends at byte {} of {}", path.string(), row, key_end_[row],
                      keys_.size());
    }
    end = key_end_[row];
  }
}

std::string_view DatasetIndex::key(uint64_t row) const {
  MM_CHECK(row < rows_, "row {} of {}", row, rows_);
  const uint64_t begin = row == 0 ? 0 : key_end_[row - 1];
  return keys_.substr(begin, key_end_[row] - begin);
}

IndexRow DatasetIndex::row(uint64_t row) const {
  MM_CHECK(row < rows_, "row {} of {}", row, rows_);
  return {source_row_[row], offset_[row], shard_[row],           bytes_[row], size(row),
          width_[row],      height_[row], std::string(key(row)), source(row)};
}

std::vector<SampleSize> DatasetIndex::sizes() const {
  std::vector<SampleSize> all(rows_);
  for (uint64_t row = 0; row < rows_; ++row) all[row] = size(row);
  return all;
}

}  // namespace mm::data
