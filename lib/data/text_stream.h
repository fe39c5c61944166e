#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "lib/base/file.h"
#include "lib/data/unpacked_file.h"

namespace mm::data {

/// A text file, plain or compressed (UnpackedFile), read from front to back in blocks; a UTF-8 byte
/// order mark at the front is skipped. Not thread-safe.
class TextStream {
 public:
  /// Throws IoError.
  explicit TextStream(const std::filesystem::path& path);

  static constexpr int kEnd = -1;
  /// Next byte 0..255 without taking it, or kEnd.
  int peek() {
    if (at_ == buffer_.size() && !refill()) return kEnd;
    return static_cast<unsigned char>(buffer_[at_]);
  }
  int get() {
    const int byte = peek();
    if (byte != kEnd) ++at_;
    return byte;
  }
  /// Offset of the next byte in the text.
  uint64_t offset() const { return buffer_offset_ + at_; }
  const std::filesystem::path& path() const { return file_.path(); }

 private:
  bool refill();
  File file_;
  std::unique_ptr<UnpackedFile> unpacked_;  ///< null: `file_` is the text
  uint64_t buffer_offset_ = 0;
  std::string buffer_;
  size_t at_ = 0;
};

/// Longest line or array element that sources accept: far above any real row, far below memory.
inline constexpr size_t kMaxRowBytes = size_t{64} << 20;

/// Next line without its end (\n or \r\n). False at the end of the file. A line over kMaxRowBytes
/// is a DataError.
bool read_line(TextStream& in, std::string& line);

}  // namespace mm::data
