#include "lib/data/column_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/base/hash.h"
#include "lib/data/byte_codec.h"

namespace mm::data {
namespace {

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

uint64_t aligned(uint64_t value) { return (value + kAlign - 1) / kAlign * kAlign; }

uint32_t header_crc(const Header& header) {
  return crc32c(
      std::string_view(reinterpret_cast<const char*>(&header), offsetof(Header, header_crc)));
}

void check_header(const Header& header, const ColumnFormat& format, const std::string& path,
                  size_t file_bytes) {
  if (std::string_view(header.magic, sizeof(header.magic)) != format.magic)
    throw DataError("{}: not an mmkit {}", path, format.what);
  if (header.version != format.version) {
    throw DataError("{}: {} version {}, this program reads {}", path, format.what, header.version,
                    format.version);
  }
  if (header.header_crc != header_crc(header))
    throw DataError("{}: damaged {} header", path, format.what);
  if (header.file_bytes != file_bytes)
    throw DataError("{}: {} bytes, its header says {}", path, file_bytes, header.file_bytes);
}

}  // namespace

void write_columns(const std::filesystem::path& path, const ColumnFormat& format, uint64_t rows,
                   std::span<const NamedColumn> columns) {
  std::vector<Column> table;
  uint64_t offset = aligned(sizeof(Header) + columns.size() * sizeof(Column));
  for (const NamedColumn& column : columns) {
    MM_CHECK(column.name.size() <= kNameBytes, "column name {}", column.name);
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
  MM_CHECK(format.magic.size() == sizeof(header.magic), "magic {}", format.magic);
  std::memcpy(header.magic, format.magic.data(), sizeof(header.magic));
  header.version = format.version;
  header.columns = static_cast<uint32_t>(table.size());
  header.rows = rows;
  header.file_bytes = offset;
  header.table_crc = crc32c(std::as_bytes(std::span(table)));
  header.header_crc = header_crc(header);
  ByteWriter out;
  out.put(header);
  out.put_all(std::span<const Column>(table));
  for (const NamedColumn& column : columns) {
    out.pad_to(kAlign);
    out.put_all(column.data);
  }
  out.pad_to(kAlign);
  write_file_atomic(path, out.take());
}

ColumnFile::ColumnFile(const std::filesystem::path& path, const ColumnFormat& format)
    : map_(path), path_(path.string()) {
  ByteReader in(map_.bytes(), path_);
  const auto header = in.get<Header>();
  check_header(header, format, path_, map_.bytes().size());
  rows_ = header.rows;
  const auto table = in.get_all<Column>(header.columns);
  if (crc32c(std::as_bytes(std::span(table))) != header.table_crc)
    throw DataError("{}: damaged column table", path_);
  for (const Column& c : table)
    places_.push_back({std::string(c.name, strnlen(c.name, kNameBytes)), c.offset, c.bytes,
                       c.element_bytes, c.crc});
}

bool ColumnFile::has(std::string_view name) const {
  return std::any_of(places_.begin(), places_.end(),
                     [&](const Place& place) { return place.name == name; });
}

std::span<const std::byte> ColumnFile::checked(std::string_view name,
                                               uint32_t element_bytes) const {
  for (const Place& place : places_) {
    if (place.name != name) continue;
    const auto file = map_.bytes();
    if (place.offset % kAlign != 0 || place.offset > file.size() ||
        place.bytes > file.size() - place.offset || place.element_bytes != element_bytes ||
        place.bytes % element_bytes != 0) {
      throw DataError("{}: column {} does not fit the file", path_, name);
    }
    const auto data = file.subspan(place.offset, place.bytes);
    if (crc32c(data) != place.crc) throw DataError("{}: column {}: checksum mismatch", path_, name);
    return data;
  }
  throw DataError("{}: column {} is missing", path_, name);
}

}  // namespace mm::data
