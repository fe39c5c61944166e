#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "lib/data/text_stream.h"

namespace mm::data {

/// Cuts a file that holds one JSON array into the texts of its elements, one at a time: memory is
/// that of one element, however long the file is. Only brackets and strings are looked at; the
/// element itself is for parse_json. Not thread-safe.
class JsonArrayReader {
 public:
  /// Throws DataError if the file does not begin with '[', IoError if it cannot be read.
  explicit JsonArrayReader(const std::filesystem::path& path);

  /// Text of the next element; false after the last. Throws DataError with the byte offset when the
  /// array is broken: an element missing, cut off before its ']', text after it, or an element over
  /// kMaxRowBytes.
  bool next(std::string& element);
  /// Byte at which the last element began.
  uint64_t element_offset() const { return element_offset_; }

 private:
  int skip_blanks();
  void scan_element(std::string& element);
  void scan_string(std::string& element);
  void take(std::string& element);
  [[noreturn]] void fail(std::string_view what) const;

  TextStream in_;
  uint64_t element_offset_ = 0;
  bool first_ = true;
  bool ended_ = false;
};

}  // namespace mm::data
