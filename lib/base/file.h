#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mm {

/// Whole file as bytes. Throws IoError with the path and errno's text; DataError if it is larger
/// than `max_bytes`.
std::string read_file(const std::filesystem::path& path, uint64_t max_bytes = uint64_t{1} << 32);

/// Law 4 for one file: writes `path`.tmp.<pid>, fsyncs it, renames, fsyncs the directory. Readers
/// see the old or the new content, never a part. Throws IoError; on failure the temporary file is
/// removed and `path` is as before.
void write_file_atomic(const std::filesystem::path& path, std::string_view content);

/// fsync of a directory entry table, so that renames in it are durable. Throws IoError.
void fsync_directory(const std::filesystem::path& directory);

/// A file open for positioned reads or sequential writes; closes itself. Not thread-safe for
/// writes; `read_at` is.
class File {
 public:
  static File open_read(const std::filesystem::path& path);
  /// Creates or truncates. `append` keeps the content and writes at the end.
  static File create(const std::filesystem::path& path, bool append = false);
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  File(const File&) = delete;
  ~File();

  const std::filesystem::path& path() const { return path_; }
  uint64_t size_bytes() const;
  /// Fills `out` from `offset`. Throws DataError ("truncated") when the file ends first.
  void read_at(uint64_t offset, std::span<std::byte> out) const;
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  void sync();
  void close();
  int descriptor() const { return fd_; }

 private:
  File(std::filesystem::path path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::filesystem::path path_;
  int fd_ = -1;
};

/// Read-only memory map of a whole file; an empty file maps to an empty span.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  ~MappedFile();
  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(data_), size_bytes_};
  }

 private:
  void* data_ = nullptr;
  size_t size_bytes_ = 0;
};

}  // namespace mm
