#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "lib/base/error.h"

namespace mm::data {

static_assert(std::endian::native == std::endian::little, "our files are little-endian");

/// Appends little-endian numbers and bytes to a string.
class ByteWriter {
 public:
  template <typename T>
  void put(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    out_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  template <typename T>
  void put_all(std::span<const T> values) {
    out_.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  }
  void put_text(std::string_view text) { out_.append(text); }
  void pad_to(size_t alignment) {
    out_.resize((out_.size() + alignment - 1) / alignment * alignment);
  }
  size_t size_bytes() const { return out_.size(); }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

/// Reads what ByteWriter wrote from bytes that may be damaged. Every read checks the end first and
/// throws DataError naming `what` and both sizes. Borrows the bytes.
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, std::string_view what)
      : bytes_(bytes), what_(what) {}

  template <typename T>
  T get() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  /// `count` numbers; nothing is allocated before the bytes are known to be there.
  template <typename T>
  std::vector<T> get_all(uint64_t count) {
    if (count > remaining() / sizeof(T)) fail(count * sizeof(T));
    std::vector<T> values(count);
    if (count > 0) std::memcpy(values.data(), take(count * sizeof(T)).data(), count * sizeof(T));
    return values;
  }
  std::span<const std::byte> take(uint64_t count) {
    if (count > remaining()) fail(count);
    const auto part = bytes_.subspan(offset_, count);
    offset_ += count;
    return part;
  }
  size_t remaining() const { return bytes_.size() - offset_; }
  size_t offset() const { return offset_; }

 private:
  [[noreturn]] void fail(uint64_t wanted) const {
    throw DataError("{}: ends at byte {}, {} more bytes expected at byte {}", what_, bytes_.size(),
                    wanted, offset_);
  }
  std::span<const std::byte> bytes_;
  std::string_view what_;
  size_t offset_ = 0;
};

}  // namespace mm::data
