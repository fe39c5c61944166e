#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/file.h"

namespace mm::data {

/// What tells one kind of column file from another.
struct ColumnFormat {
  std::string_view magic;  ///< 8 bytes
  uint32_t version = 1;    ///< written; a reader refuses any other
  std::string_view what;   ///< for messages: "index", "plan"
};

/// One column to write; borrows its bytes.
struct NamedColumn {
  std::string_view name;  ///< at most 16 bytes
  uint32_t element_bytes = 1;
  std::span<const std::byte> data;
};
template <typename T>
NamedColumn named_column(std::string_view name, std::span<const T> values) {
  return {name, sizeof(T), std::as_bytes(values)};
}

/// Writes a columnar file (docs/formats.md): 64-byte header with the row count, a table of columns
/// (name, place, CRC32C), the columns, each at a multiple of 64 bytes. Atomic.
void write_columns(const std::filesystem::path& path, const ColumnFormat& format, uint64_t rows,
                   std::span<const NamedColumn> columns);

/// A columnar file, mapped. Opening checks the header and the table against the file's size;
/// reading a column checks its place, element size, count and checksum, then gives it in place.
/// Immutable, thread-safe.
class ColumnFile {
 public:
  /// Throws IoError, or DataError naming the damaged part.
  ColumnFile(const std::filesystem::path& path, const ColumnFormat& format);

  uint64_t rows() const { return rows_; }
  std::span<const std::byte> bytes() const { return map_.bytes(); }
  const std::string& path() const { return path_; }

  bool has(std::string_view name) const;
  /// `count`: elements the column must have; none: any count. DataError if anything does not fit.
  template <typename T>
  std::span<const T> get(std::string_view name, std::optional<uint64_t> count) const {
    const auto data = checked(name, sizeof(T));
    if (count && data.size() / sizeof(T) != *count) {
      throw DataError("{}: column {} has {} elements, expected {}", path_, name,
                      data.size() / sizeof(T), *count);
    }
    return {reinterpret_cast<const T*>(data.data()), data.size() / sizeof(T)};
  }

 private:
  struct Place {
    std::string name;
    uint64_t offset = 0, bytes = 0;
    uint32_t element_bytes = 0, crc = 0;
  };
  std::span<const std::byte> checked(std::string_view name, uint32_t element_bytes) const;
  MappedFile map_;
  std::string path_;
  uint64_t rows_ = 0;
  std::vector<Place> places_;
};

}  // namespace mm::data
