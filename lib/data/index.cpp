#include "lib/data/index.h"

#include <array>
#include <cstring>
#include <utility>

#include "lib/base/error.h"
#include "lib/base/hash.h"
#include "lib/data/byte_codec.h"

namespace mm::data {
namespace {

constexpr std::string_view kMagic = "MMINDEX\n";
constexpr uint32_t kVersion = 1;
constexpr size_t kAlign = 64;
constexpr size_t kNameBytes = 16;

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t columns;
  uint64_t rows;
  uint64_t file_bytes;
  uint32_t table_crc;
  uint32_t header_crc;  ///< of the bytes before it
  char zero[24];
};
static_assert(sizeof(Header) == 64);

struct Column {
  char name[kNameBytes];
  uint64_t offset;
  uint64_t bytes;
  uint32_t element_bytes;
  uint32_t crc;
};
static_assert(sizeof(Column) == 40);

struct NamedColumn {
  std::string_view name;
  uint32_t element_bytes;
  std::string data;
};

template <typename T, typename Get>
NamedColumn column_of(std::string_view name, std::span<const IndexRow> rows, Get get) {
  ByteWriter out;
  for (const IndexRow& row : rows) out.put(static_cast<T>(get(row)));
  return {name, sizeof(T), out.take()};
}

std::vector<NamedColumn> columns_of(std::span<const IndexRow> rows) {
  std::vector<NamedColumn> all;
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
  uint64_t end = 0;
  all.push_back(
      column_of<uint64_t>("key_end", rows, [&](const IndexRow& r) { return end += r.key.size(); }));
  NamedColumn keys{"keys", 1, {}};
  for (const IndexRow& row : rows) keys.data += row.key;
  all.push_back(std::move(keys));
  return all;
}

uint64_t aligned(uint64_t value) { return (value + kAlign - 1) / kAlign * kAlign; }

uint32_t header_crc(const Header& header) {
  return crc32c(
      std::string_view(reinterpret_cast<const char*>(&header), offsetof(Header, header_crc)));
}

/// The checked table of an index file.
class Table {
 public:
  Table(std::span<const std::byte> file, std::string_view path) : file_(file), path_(path) {
    ByteReader in(file, path);
    header_ = in.get<Header>();
    if (std::string_view(header_.magic, 8) != kMagic)
      throw DataError("{}: not an mmkit index", path);
    if (header_.version != kVersion) {
      throw DataError("{}: index version {}, this program reads {}", path, header_.version,
                      kVersion);
    }
    if (header_.header_crc != header_crc(header_))
      throw DataError("{}: damaged index header", path);
    if (header_.file_bytes != file.size()) {
      throw DataError("{}: {} bytes, its header says {}", path, file.size(), header_.file_bytes);
    }
    columns_ = in.get_all<Column>(header_.columns);
    if (crc32c(std::as_bytes(std::span(columns_))) != header_.table_crc) {
      throw DataError("{}: damaged column table", path);
    }
  }

  uint64_t rows() const { return header_.rows; }

  /// Column `name`; T's size and `rows` elements are checked (rows = 0: any count), then its
  /// checksum.
  template <typename T>
  std::span<const T> get(std::string_view name, bool per_row = true) const {
    const Column& column = find(name);
    if (column.offset % kAlign != 0 || column.offset > file_.size() ||
        column.bytes > file_.size() - column.offset || column.element_bytes != sizeof(T) ||
        column.bytes % sizeof(T) != 0 || (per_row && column.bytes / sizeof(T) != header_.rows)) {
      throw DataError("{}: column {} does not fit the file", path_, name);
    }
    const auto bytes = file_.subspan(column.offset, column.bytes);
    if (crc32c(bytes) != column.crc)
      throw DataError("{}: column {}: checksum mismatch", path_, name);
    return {reinterpret_cast<const T*>(bytes.data()), column.bytes / sizeof(T)};
  }

 private:
  const Column& find(std::string_view name) const {
    for (const Column& column : columns_) {
      if (std::string_view(column.name, strnlen(column.name, kNameBytes)) == name) return column;
    }
    throw DataError("{}: column {} is missing", path_, name);
  }
  std::span<const std::byte> file_;
  std::string_view path_;
  Header header_{};
  std::vector<Column> columns_;
};

}  // namespace

void write_index(const std::filesystem::path& path, std::span<const IndexRow> rows) {
  const auto columns = columns_of(rows);
  std::vector<Column> table;
  uint64_t offset = aligned(sizeof(Header) + columns.size() * sizeof(Column));
  for (const NamedColumn& column : columns) {
    Column entry{};
    std::memcpy(entry.name, column.name.data(), column.name.size());
    entry.offset = offset;
    entry.bytes = column.data.size();
    entry.element_bytes = column.element_bytes;
    entry.crc = crc32c(column.data);
    table.push_back(entry);
    offset = aligned(offset + entry.bytes);
  }
  Header header{};
  std::memcpy(header.magic, kMagic.data(), kMagic.size());
  header.version = kVersion;
  header.columns = static_cast<uint32_t>(table.size());
  header.rows = rows.size();
  header.file_bytes = offset;
  header.table_crc = crc32c(std::as_bytes(std::span(table)));
  header.header_crc = header_crc(header);
  ByteWriter out;
  out.put(header);
  out.put_all(std::span<const Column>(table));
  for (const NamedColumn& column : columns) {
    out.pad_to(kAlign);
    out.put_text(column.data);
  }
  out.pad_to(kAlign);
  write_file_atomic(path, out.take());
}

DatasetIndex::DatasetIndex(const std::filesystem::path& path) : map_(path) {
  const std::string name = path.string();
  const Table table(map_.bytes(), name);
  rows_ = table.rows();
  source_row_ = table.get<uint64_t>("source_row");
  offset_ = table.get<uint64_t>("offset");
  shard_ = table.get<uint32_t>("shard");
  bytes_ = table.get<uint32_t>("bytes");
  tokens_ = table.get<int32_t>("tokens");
  images_ = table.get<int32_t>("images");
  targets_ = table.get<int32_t>("targets");
  width_ = table.get<int32_t>("width");
  height_ = table.get<int32_t>("height");
  key_end_ = table.get<uint64_t>("key_end");
  const auto keys = table.get<char>("keys", false);
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
  return {source_row_[row], offset_[row], shard_[row],  bytes_[row],
          size(row),        width_[row],  height_[row], std::string(key(row))};
}

std::vector<SampleSize> DatasetIndex::sizes() const {
  std::vector<SampleSize> all(rows_);
  for (uint64_t row = 0; row < rows_; ++row) all[row] = size(row);
  return all;
}

}  // namespace mm::data
