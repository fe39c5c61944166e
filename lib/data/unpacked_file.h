#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace mm::data {

/// True if the file begins as gzip, Zstandard, xz or bzip2 do. Throws IoError.
bool is_compressed(const std::filesystem::path& path);

/// A compressed file (gzip, Zstandard, xz or bzip2, by its content) read from front to back, in the
/// memory of a block. Not thread-safe.
class UnpackedFile {
 public:
  /// Throws IoError, DataError if the file is none of them.
  explicit UnpackedFile(std::filesystem::path path);
  ~UnpackedFile();
  UnpackedFile(const UnpackedFile&) = delete;
  UnpackedFile& operator=(const UnpackedFile&) = delete;

  /// The next bytes, at most as many as `out` holds; 0 at the end. Throws DataError where the file
  /// is damaged or cut off.
  size_t read(std::span<std::byte> out);

 private:
  [[noreturn]] void fail() const;
  struct Handle;
  std::filesystem::path path_;
  std::unique_ptr<Handle> handle_;
};

}  // namespace mm::data
